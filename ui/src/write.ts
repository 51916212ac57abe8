import "../styles/write.css";
import { createApp } from "vue";
import Editor from "./Editor.vue";

const place = document.getElementById("app");
if (place) createApp(Editor, { id: place.dataset.id || null }).mount(place);
