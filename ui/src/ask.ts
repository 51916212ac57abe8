// Asks before something can't be undone, in the browser's own dialog element.

import { say } from "./page";

export function ask(title: string, text: string, yes: string): Promise<boolean> {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-labelledby", "ask-title");
  dialog.dataset.testid = "ask";
  const heading = document.createElement("h2");
  heading.id = "ask-title";
  heading.textContent = title;
  const words = document.createElement("p");
  words.textContent = text;
  const actions = document.createElement("p");
  actions.className = "actions";
  const button = (label: string, kind: string, value: string) => {
    const made = document.createElement("button");
    made.type = "button";
    made.className = `button ${kind}`;
    made.textContent = label;
    made.dataset.testid = value;
    made.addEventListener("click", () => dialog.close(value));
    return made;
  };
  actions.append(button(say("mine.cancel"), "", "cancel"), button(yes, "danger", "confirm"));
  dialog.append(heading, words, actions);
  document.body.append(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "confirm");
    });
    dialog.showModal();
  });
}
