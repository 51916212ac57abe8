import "../styles/mine.css";
import { type Component, createApp } from "vue";
import Articles from "./Articles.vue";
import Collections from "./Collections.vue";
import History from "./History.vue";

const lists: Record<string, Component> = { articles: Articles, collections: Collections, history: History };
const place = document.getElementById("app");
const list = lists[place?.dataset.list ?? ""];
if (place && list) createApp(list).mount(place);
