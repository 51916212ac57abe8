// The contrasts that the design asks for, measured as WCAG 2 has it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

type Colours = Map<string, string>;

const css = readFileSync("styles/tokens.css", "utf8");
const blocks = [...css.matchAll(/([^{}]*)\{([^{}]*--paper:[^{}]*)\}/g)].map(([, selector, body]) => ({
  selector: selector!.trim(),
  colours: new Map([...body!.matchAll(/(--[\w-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [name!, value!])) as Colours,
}));

function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const part = parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high! + 0.05) / (low! + 0.05);
}

/** What stands on what, and how much contrast it needs. Controls' edges need 3 (WCAG 1.4.11). */
const pairs: [string, string, number][] = [
  ["--ink", "--paper", 7],
  ["--ink", "--wash", 7],
  ["--accent", "--paper", 7],
  ["--ink-soft", "--paper", 4.5],
  ["--ink-soft", "--wash", 4.5],
  ["--accent", "--wash", 4.5],
  ["--accent-ink", "--accent", 4.5],
  ["--good", "--paper", 4.5],
  ["--warn", "--paper", 4.5],
  ["--bad", "--paper", 4.5],
  ["--bad", "--wash", 4.5],
  ["--data-1", "--paper", 3],
  ["--data-2", "--paper", 3],
  ["--data-3", "--paper", 3],
  ["--control", "--paper", 3],
];

test("there are a light and two dark sets of colours, the dark ones alike", () => {
  assert.equal(blocks.length, 3);
  assert.deepEqual(blocks[1]!.colours, blocks[2]!.colours);
  assert.deepEqual([...blocks[0]!.colours.keys()].sort(), [...blocks[1]!.colours.keys()].sort());
});

for (const { selector, colours } of blocks) {
  test(`contrast of ${selector.split("\n").pop()}`, () => {
    for (const [front, back, needed] of pairs) {
      const got = contrast(colours.get(front)!, colours.get(back)!);
      assert.ok(got >= needed, `${front} on ${back}: ${got.toFixed(2)}, needed ${needed}`);
    }
  });
}
