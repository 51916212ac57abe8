// A list that grows by cursor, with its states: quiet, loading (told after 300 ms), loaded, failed, and
// "the rest failed".

import { reactive } from "vue";
import { type Answer, call } from "./api";
import { signInAddress, whileSlow } from "./page";

interface Listing<T> {
  items: T[];
  next_cursor?: string;
}

export interface List<T> {
  items: T[];
  state: "quiet" | "slow" | "loaded" | "failed";
  /** Why the first or the next part could not be had. */
  why: string;
  more: "none" | "some" | "loading" | "failed";
  begin(path: string): Promise<void>;
  next(): Promise<void>;
  again(): Promise<void>;
}

const size = 30;

export function useList<T>(): List<T> {
  let path = "";
  let cursor: string | undefined;
  let run = 0;

  function fetchPart(): Promise<Answer<Listing<T>>> {
    const query = new URLSearchParams({ limit: String(size) });
    if (cursor) query.set("cursor", cursor);
    return call<Listing<T>>("GET", `${path}?${query}`);
  }

  /** False when the reader has to sign in, or another list took this one's place. */
  function taken(answer: Answer<Listing<T>>, mine: number): boolean {
    if (mine !== run) return false;
    if (answer.status === 401) location.assign(signInAddress());
    if (!answer.ok) return false;
    cursor = answer.data.next_cursor;
    list.more = cursor ? "some" : "none";
    return true;
  }

  const list: List<T> = reactive({
    items: [],
    state: "quiet",
    why: "",
    more: "none",
    async begin(of: string) {
      path = of;
      cursor = undefined;
      const mine = ++run;
      list.state = "quiet";
      list.items = [];
      list.more = "none";
      const answer = await whileSlow(fetchPart(), () => {
        if (mine === run) list.state = "slow";
      });
      if (mine !== run) return;
      list.why = answer.why;
      if (taken(answer, mine)) list.items = answer.data.items;
      list.state = answer.ok ? "loaded" : "failed";
    },
    async next() {
      if (list.more === "loading" || list.more === "none") return;
      const mine = run;
      list.more = "loading";
      const answer = await fetchPart();
      if (taken(answer, mine)) list.items.push(...answer.data.items);
      else if (mine === run) {
        list.why = answer.why;
        list.more = "failed";
      }
    },
    again: () => list.begin(path),
  }) as List<T>;
  return list;
}
