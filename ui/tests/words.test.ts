// What is said in numbers and times, in both languages, by the same table as the server's (words_test.cc).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { countWords, exactNumber, exactTime, type Say, shortNumber, whenWords } from "../src/words";

process.env.TZ = "UTC";

type Messages = Record<string, Record<string, string>>;
type Language = "en" | "zh";
const read = (name: string) => JSON.parse(readFileSync(name, "utf8"));
const languages: Record<Language, Messages> = { en: read("messages/en.json"), zh: read("messages/zh.json") };
const table = read("tests/words.json") as {
  numbers: { n: number; en: string; zh: string }[];
  exact: { n: number; text: string }[];
  times: { age: number; en: string; zh: string }[];
};

function sayIn(language: Language): Say {
  return (key, values = {}) => {
    const [section = "", name = ""] = key.split(".");
    const text = languages[language][section]?.[name];
    assert.ok(text !== undefined, `no message ${key}`);
    return text.replace(/\{(\w+)\}/g, (_, value: string) => String(values[value]));
  };
}

const now = new Date(1_700_000_000_000);

for (const language of ["en", "zh"] as const) {
  const say = sayIn(language);
  test(`short numbers in ${language}`, () => {
    for (const row of table.numbers) assert.equal(shortNumber(row.n, say), row[language]);
  });
  test(`times in ${language}`, () => {
    for (const row of table.times)
      assert.equal(whenWords(new Date(now.getTime() - row.age * 1000), now, say), row[language]);
  });
}

test("exact numbers and times", () => {
  for (const row of table.exact) assert.equal(exactNumber(row.n), row.text);
  assert.equal(exactTime(now), "2023-11-14 22:13");
});

test("one is singular", () => {
  assert.equal(countWords("likes", 1, sayIn("en")), "1 like");
  assert.equal(countWords("likes", 2, sayIn("en")), "2 likes");
});

test("both languages have the same messages with the same places", () => {
  const shape = (messages: Messages) =>
    Object.entries(messages).flatMap(([section, texts]) =>
      Object.entries(texts).map(([key, text]) => {
        const places = key.endsWith("_one") ? [] : (text.match(/\{\w+\}/g) ?? []).sort();
        return `${section}.${key} ${places.join(" ")}`;
      }),
    );
  assert.deepEqual(shape(languages.zh).sort(), shape(languages.en).sort());
});

test("every message that the sources name is there", () => {
  const known = new Set(Object.entries(languages.en).flatMap(([s, texts]) => Object.keys(texts).map((k) => `${s}.${k}`)));
  // "article.id" in a component is a variable.
  const sections = (file: string) =>
    Object.keys(languages.en)
      .filter((section) => section !== "article" || !file.endsWith(".vue"))
      .join("|");
  for (const name of ["site", "keys", "article", "auth", "ask", "api", "page", "words"]) check(`src/${name}.ts`);
  for (const name of ["Articles", "Collections", "Editor", "History", "ListStates", "When"]) check(`src/${name}.vue`);
  function check(file: string): void {
    const named = readFileSync(file, "utf8").matchAll(new RegExp(`["'\`]((?:${sections(file)})\\.[a-z0-9_]+)["'\`]`, "g"));
    for (const [, key] of named) assert.ok(known.has(key!), `${file} says ${key}, which is no message`);
  }
});
