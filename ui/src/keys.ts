// Keys: j and k walk a list, Enter opens (a link does that by itself), ? tells the keys.

import { say } from "./page";

function typing(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return !!element?.closest?.("input, textarea, select, [contenteditable], dialog[open]");
}

function walk(by: 1 | -1): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>("[data-walk] .row-title a")];
  if (links.length === 0) return;
  const here = links.findIndex((link) => link.closest(".row")?.contains(document.activeElement));
  const next = here < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(here + by, 0), links.length - 1);
  const link = links[next];
  link?.focus();
  link?.closest(".row")?.scrollIntoView({ block: "nearest" });
}

function dialog(): HTMLDialogElement {
  const known = document.getElementById("keys-dialog");
  if (known instanceof HTMLDialogElement) return known;
  const made = document.createElement("dialog");
  made.id = "keys-dialog";
  made.setAttribute("aria-labelledby", "keys-title");
  const title = document.createElement("h2");
  title.id = "keys-title";
  title.textContent = say("site.keys_title");
  const list = document.createElement("dl");
  list.className = "keys";
  const keys: [string, string][] = [
    ["j", "site.key_next"],
    ["k", "site.key_previous"],
    ["Enter", "site.key_open"],
    ["Ctrl S", "site.key_save"],
    ["?", "site.key_help"],
  ];
  for (const [key, meaning] of keys) {
    const term = document.createElement("dt");
    const cap = document.createElement("kbd");
    cap.textContent = key;
    term.append(cap);
    const text = document.createElement("dd");
    text.textContent = say(meaning);
    list.append(term, text);
  }
  const close = document.createElement("button");
  close.className = "button";
  close.type = "button";
  close.textContent = say("site.close");
  close.addEventListener("click", () => made.close());
  made.addEventListener("click", (event) => {
    if (event.target === made) made.close();
  });
  made.append(title, list, close);
  document.body.append(made);
  return made;
}

export function startKeys(): void {
  const show = () => dialog().showModal();
  document.getElementById("show-keys")?.addEventListener("click", show);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || typing(event.target)) return;
    if (event.key === "j") walk(1);
    else if (event.key === "k") walk(-1);
    else if (event.key === "?") show();
    else return;
    event.preventDefault();
  });
}
