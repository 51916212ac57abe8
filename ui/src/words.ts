// Numbers and times as people say them. The server says them the same way (site/pages/words.cc); both are
// held to tests/words.json.

export type Say = (key: string, values?: Record<string, string | number>) => string;

/** 12345 -> "12.3k" or "1.2 万": one decimal below a hundred of the unit, cut, never rounded up. */
export function shortNumber(n: number, say: Say): string {
  let short = String(n);
  for (const key of ["words.unit_1", "words.unit_2", "words.unit_3"]) {
    const [size, name = ""] = say(key).split(":");
    const unit = Number(size);
    if (n < unit) break;
    const tenths = Math.floor(n / (unit / 10));
    const decimal = tenths < 1000 && tenths % 10 > 0 ? `.${tenths % 10}` : "";
    short = `${Math.floor(tenths / 10)}${decimal}${name}`;
  }
  return short;
}

/** 1234567 -> "1,234,567". */
export function exactNumber(n: number): string {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

function counted(key: string, n: number, say: Say): string {
  return n === 1 ? say(`${key}_one`) : say(key, { n });
}

/** "3 hours ago" within a week, else the day in the reader's zone. What is ahead of the clock is "just now". */
export function whenWords(time: Date, now: Date, say: Say): string {
  const age = now.getTime() - time.getTime();
  if (age < minute) return say("words.just_now");
  if (age < hour) return counted("words.minutes", Math.floor(age / minute), say);
  if (age < day) return counted("words.hours", Math.floor(age / hour), say);
  if (age < 7 * day) return counted("words.days", Math.floor(age / day), say);
  return say("words.date", {
    year: time.getFullYear(),
    name: say("words.months").split(",")[time.getMonth()] ?? "",
    day: time.getDate(),
  });
}

/** "2026-03-05 14:30", in the reader's zone. */
export function exactTime(time: Date): string {
  const two = (n: number) => String(n).padStart(2, "0");
  const date = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${date} ${two(time.getHours())}:${two(time.getMinutes())}`;
}

/** `n` of something, short, as "likes" or "reads". */
export function countWords(key: string, n: number, say: Say): string {
  return n === 1 ? say(`words.${key}_one`) : say(`words.${key}`, { n: shortNumber(n, say) });
}
