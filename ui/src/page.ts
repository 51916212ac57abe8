// What the server told this page: its language, its words, and who reads it.

type Words = Record<string, string>;

const told: Words = JSON.parse(document.getElementById("words")?.textContent ?? "{}");

export const language = document.documentElement.lang.startsWith("zh") ? "zh" : "en";
export const signedIn = document.body.dataset.signedIn === "1";

/** The text of a key such as "site.close", with {name} replaced by what `values` has for it. */
export function say(key: string, values: Record<string, string | number> = {}): string {
  return fill(told[key] ?? key, values);
}

export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** Where to sign in, to come back here afterwards. */
export function signInAddress(): string {
  return `/signin?next=${encodeURIComponent(location.pathname + location.search)}`;
}

/** Runs `step` only if the work is still going on after 300 ms: what is quick needs no "loading". */
export async function whileSlow<T>(work: Promise<T>, step: () => void): Promise<T> {
  const timer = setTimeout(step, 300);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
