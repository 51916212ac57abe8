// What just happened, said for a while.

import { type Ref, ref } from "vue";
import type { Answer } from "./api";
import { say } from "./page";

const shownMs = 8_000;

export interface Said {
  text: Ref<string>;
  /** Says `word`, or why not; true when the answer is good. */
  tell(answer: Answer<unknown>, word: string): boolean;
}

export function useSaid(): Said {
  const text = ref("");
  let timer: ReturnType<typeof setTimeout> | undefined;
  return {
    text,
    tell(answer, word) {
      clearTimeout(timer);
      text.value = answer.ok ? word : say("mine.failed", { why: answer.why });
      timer = setTimeout(() => (text.value = ""), shownMs);
      return answer.ok;
    },
  };
}
