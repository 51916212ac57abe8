// An article's buttons, and where one is in it.

import { call } from "./api";
import { say, signInAddress } from "./page";
import { countWords, exactNumber, shortNumber } from "./words";

/** Like and collect: the count moves at once and goes back, with a word, if the server refuses. */
function startReaction(button: HTMLButtonElement, word: HTMLElement, said: HTMLElement): void {
  const kind = button.dataset.kind === "collect" ? "collect" : "like";
  const path = `/v1/interactions/article/${button.dataset.id}/${kind === "like" ? "like" : "collection"}`;
  const count = button.querySelector<HTMLElement>(".count");
  const label = button.querySelector<HTMLElement>(".label");
  let on = button.getAttribute("aria-pressed") === "true";
  let n = Number(button.dataset.count ?? "0");
  let running = false;

  const show = () => {
    button.setAttribute("aria-pressed", String(on));
    if (label) label.textContent = say(`article.${kind === "like" ? (on ? "liked" : "like") : on ? "collected" : "collect"}`);
    if (!count) return;
    count.textContent = shortNumber(n, say);
    count.title = exactNumber(n);
  };
  const flip = () => {
    on = !on;
    n = Math.max(0, n + (on ? 1 : -1));
    show();
  };

  button.addEventListener("click", async () => {
    // aria-disabled, not disabled: the button keeps the focus while its request runs.
    if (running) return;
    running = true;
    button.setAttribute("aria-disabled", "true");
    word.textContent = said.textContent = "";
    flip();
    const answer = await call(on ? "PUT" : "DELETE", path);
    if (!answer.ok) {
      flip();
      if (answer.status === 401) location.assign(signInAddress());
      word.textContent = say("site.refused", { why: answer.why });
    }
    said.textContent = countWords(kind === "like" ? "likes" : "collects", n, say);
    running = false;
    button.removeAttribute("aria-disabled");
  });
}

/** The line at the top that tells how far one has read, for articles longer than two screens. */
function startProgress(text: HTMLElement): void {
  const line = document.createElement("div");
  line.className = "progress";
  line.setAttribute("aria-hidden", "true");
  let waiting = false;
  const draw = () => {
    waiting = false;
    const box = text.getBoundingClientRect();
    const way = box.height - innerHeight;
    const long = box.height > 2 * innerHeight;
    const part = long ? Math.min(Math.max(-box.top / way, 0), 1) : 0;
    line.style.transform = `scaleX(${part})`;
  };
  const ask = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(draw);
  };
  document.body.append(line);
  addEventListener("scroll", ask, { passive: true });
  addEventListener("resize", ask, { passive: true });
  draw();
}

/** Marks the section that is being read in the list of contents. */
function startContents(): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>(".contents a")];
  if (links.length === 0) return;
  const sections = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
  const mark = () => {
    let here = -1;
    sections.forEach((section, i) => {
      if (section && section.getBoundingClientRect().top < innerHeight / 3) here = i;
    });
    links.forEach((link, i) => {
      if (i === here) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
  };
  let waiting = false;
  addEventListener(
    "scroll",
    () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        mark();
      });
    },
    { passive: true },
  );
  mark();
}

const word = document.getElementById("reaction-word");
const said = document.getElementById("reaction-said");
if (word && said)
  for (const button of document.querySelectorAll<HTMLButtonElement>("button.reaction"))
    startReaction(button, word, said);
const text = document.querySelector<HTMLElement>(".text");
if (text) startProgress(text);
startContents();
