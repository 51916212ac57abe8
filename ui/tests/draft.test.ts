// The editor's way to the server: what is saved when, and what happens when it isn't.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import type { Answer } from "../src/api";
import { Draft, firstRetryMs, quietMs } from "../src/draft";

interface Asked {
  method: string;
  path: string;
  body: unknown;
  ifMatch: string | undefined;
  answer: (status: number, data?: unknown, etag?: string) => void;
}

/** setTimeout by hand: time moves when a test says so. */
const time = {
  now: 0,
  next: 1,
  waiting: new Map<number, { at: number; run: () => void }>(),
  tick(ms: number): void {
    this.now += ms;
    for (const [id, timer] of [...this.waiting])
      if (timer.at <= this.now && this.waiting.delete(id)) timer.run();
  },
};
Object.assign(globalThis, {
  setTimeout: (run: () => void, ms: number) => {
    time.waiting.set(time.next, { at: time.now + ms, run });
    return time.next++;
  },
  clearTimeout: (id: number) => void time.waiting.delete(id),
});

let asked: Asked[] = [];
const text = { title: "", content: "" };
let draft: Draft;

function call<T>(method: string, path: string, options: { body?: unknown; headers?: Record<string, string> } = {}) {
  return new Promise<Answer<T>>((resolve) => {
    asked.push({
      method,
      path,
      body: options.body,
      ifMatch: options.headers?.["If-Match"],
      answer: (status, data = {}, etag) =>
        resolve({
          ok: status >= 200 && status < 300,
          status,
          data: data as T,
          etag: etag ?? null,
          why: status < 300 ? "" : "no",
          code: "",
          faults: [],
        }),
    });
  });
}

const settle = async () => {
  for (let i = 0; i < 10; i++) await Promise.resolve();
};

function type(title: string, content: string): void {
  text.title = title;
  text.content = content;
  draft.touch();
}

async function born(): Promise<void> {
  type("a", "b");
  time.tick(quietMs);
  asked[0]!.answer(201, { id: "7" }, '"1"');
  await settle();
}

beforeEach(() => {
  time.waiting.clear();
  asked = [];
  text.title = text.content = "";
  draft = new Draft(() => ({ ...text }), call, () => {});
});

test("a pause while typing saves, once", async () => {
  type("a", "");
  time.tick(quietMs - 1);
  type("ab", "");
  time.tick(quietMs - 1);
  assert.equal(asked.length, 0);
  time.tick(1);
  assert.equal(asked.length, 1);
  assert.equal(draft.state, "saving");
  asked[0]!.answer(201, { id: "7" }, '"1"');
  await settle();
  assert.equal(draft.state, "saved");
  assert.equal(draft.id, "7");
  assert.equal(draft.dirty, false);
});

test("without a title nothing is sent, and asking for it names the field", async () => {
  type("", "words");
  time.tick(60_000);
  assert.equal(asked.length, 0);
  assert.equal(await draft.save(), false);
  assert.equal(draft.fault, "title_missing");
});

test("a second save waits for the first, and goes to the same article with its version", async () => {
  type("a", "b");
  time.tick(quietMs);
  type("a", "bc");
  const done = draft.save();
  assert.equal(asked.length, 1);
  asked[0]!.answer(201, { id: "7" }, '"1"');
  await settle();
  assert.equal(asked.length, 2);
  assert.deepEqual([asked[1]!.method, asked[1]!.path, asked[1]!.ifMatch], ["PUT", "/v1/articles/7", '"1"']);
  asked[1]!.answer(200, {}, '"2"');
  assert.equal(await done, true);
  assert.equal(draft.state, "saved");
});

test("a server that is away is tried again, ever more slowly", async () => {
  await born();
  type("a", "c");
  time.tick(quietMs);
  asked[1]!.answer(0);
  await settle();
  assert.equal(draft.state, "failed");
  assert.equal(draft.dirty, true);
  time.tick(firstRetryMs);
  assert.equal(asked.length, 3);
  asked[2]!.answer(503);
  await settle();
  time.tick(firstRetryMs);
  assert.equal(asked.length, 3);
  time.tick(firstRetryMs);
  assert.equal(asked.length, 4);
  asked[3]!.answer(200, {}, '"2"');
  await settle();
  assert.equal(draft.state, "saved");
});

test("what somebody else changed is not overwritten before the writer says so", async () => {
  await born();
  type("a", "mine");
  time.tick(quietMs);
  asked[1]!.answer(412);
  await settle();
  assert.equal(draft.state, "conflict");
  type("a", "mine too");
  time.tick(60_000);
  assert.equal(asked.length, 2);
  const done = draft.keepMine();
  await settle();
  assert.equal(asked[2]!.ifMatch, undefined);
  asked[2]!.answer(200, {}, '"9"');
  assert.equal(await done, true);
});

test("what the server refuses is not tried again by itself", async () => {
  await born();
  type("a", "c");
  time.tick(quietMs);
  asked[1]!.answer(422);
  await settle();
  assert.equal(draft.state, "refused");
  time.tick(60_000);
  assert.equal(asked.length, 2);
});

test("going back to what is saved needs no save", async () => {
  await born();
  type("a", "c");
  type("a", "b");
  time.tick(60_000);
  assert.equal(asked.length, 1);
  assert.equal(draft.state, "saved");
});
