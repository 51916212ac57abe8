// What every page has: dates in the reader's zone, the menu, signing out, keys. Small, and nothing here is
// needed to read.

import "../styles/site.css";
import { call } from "./api";
import { startKeys } from "./keys";
import { say, signedIn } from "./page";
import { exactTime, whenWords } from "./words";

function tellTimes(): void {
  const now = new Date();
  for (const element of document.querySelectorAll<HTMLTimeElement>("time[datetime]")) {
    const time = new Date(element.dateTime);
    const words = whenWords(time, now, say);
    if (element.textContent !== words) element.textContent = words;
    element.title = exactTime(time);
  }
}

function startMenu(): void {
  const menu = document.querySelector<HTMLDetailsElement>(".menu");
  if (!menu) return;
  document.addEventListener("click", (event) => {
    if (menu.open && !menu.contains(event.target as Node)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary")?.focus();
  });
  menu.addEventListener("focusout", (event) => {
    const next = event.relatedTarget as Node | null;
    if (next && !menu.contains(next)) menu.open = false;
  });
}

function startThemes(): void {
  const links = document.querySelectorAll<HTMLAnchorElement>("a[data-theme-choice]");
  const apply = (choice: string) => {
    if (choice === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
    for (const link of links)
      link.setAttribute("aria-current", String(link.dataset.themeChoice === choice));
  };
  for (const link of links) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const choice = link.dataset.themeChoice ?? "system";
      // Remembered where the server reads it, so that the next page comes in the right colours at once.
      document.cookie = `weir_theme=${choice}; Path=/; Max-Age=31536000; SameSite=Lax`;
      apply(choice);
    });
  }
  // A page that comes back from the browser's memory may be older than the choice.
  addEventListener("pageshow", (event) => {
    const chosen = /(?:^|; )weir_theme=(system|light|dark)/.exec(document.cookie)?.[1];
    if (event.persisted && chosen) apply(chosen);
  });
}

function startSignOut(): void {
  const button = document.querySelector<HTMLButtonElement>("#sign-out");
  button?.addEventListener("click", async () => {
    button.disabled = true;
    const answer = await call("DELETE", "/v1/sessions");
    button.disabled = false;
    if (answer.ok || answer.status === 401) location.assign("/");
    else button.textContent = say("site.refused", { why: answer.why });
  });
}

/** The cookie lasts a week; whoever comes back within it stays signed in. Once a day is enough. */
async function renewSession(): Promise<void> {
  const key = "weir-renewed";
  const day = 86_400_000;
  try {
    const last = Number(localStorage.getItem(key) ?? "0");
    if (Math.abs(Date.now() - last) < day) return;
    if ((await call("POST", "/v1/sessions/refresh")).ok) localStorage.setItem(key, String(Date.now()));
  } catch {
    // Without storage the session simply ends when its cookie does.
  }
}

tellTimes();
setInterval(tellTimes, 60_000);
startMenu();
startThemes();
startSignOut();
startKeys();
if (signedIn) void renewSession();
