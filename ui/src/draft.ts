// A draft and its way to the server: saved as one types, one request at a time, tried again when the server
// is away. Knows nothing of the page; the editor shows its state.

import type { Answer } from "./api";

export type State = "new" | "unsaved" | "saving" | "saved" | "failed" | "refused" | "conflict" | "signed-out";

export interface Copy {
  title: string;
  content: string;
}

export interface OwnArticle extends Copy {
  id: string;
  status: "draft" | "published" | "withdrawn";
}

type Call = <T>(
  method: string,
  path: string,
  options?: { body?: unknown; headers?: Record<string, string> },
) => Promise<Answer<T>>;

export const quietMs = 1_000; // a pause this long while typing saves
export const firstRetryMs = 2_000;
export const lastRetryMs = 30_000;
export const maxTitle = 10_000; // code points
export const maxContentBytes = 2 * 1024 * 1024 - 64 * 1024;

export class Draft {
  id: string | null = null;
  status: OwnArticle["status"] = "draft";
  state: State = "new";
  why = "";
  savedAt: Date | null = null;
  /** The field that is wrong, as the server or a look here found. */
  fault: "title_missing" | "title_long" | "content_long" | "" = "";

  private etag: string | null = null;
  private saved: Copy = { title: "", content: "" };
  private timer: ReturnType<typeof setTimeout> | undefined;
  private running: Promise<boolean> | null = null;
  private retryMs = firstRetryMs;
  private readonly birthKey = [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16)).join("-");

  constructor(
    private readonly read: () => Copy,
    private readonly call: Call,
    private readonly changed: () => void,
  ) {}

  get dirty(): boolean {
    const now = this.read();
    return now.title !== this.saved.title || now.content !== this.saved.content;
  }

  async load(id: string): Promise<Answer<OwnArticle>> {
    const answer = await this.call<OwnArticle>("GET", `/v1/me/articles/${id}`);
    if (!answer.ok) return answer;
    this.id = id;
    this.status = answer.data.status;
    this.etag = answer.etag;
    this.saved = { title: answer.data.title, content: answer.data.content };
    this.become("saved");
    return answer;
  }

  /** To be called after each change of the text. */
  touch(): void {
    if (this.state === "conflict" || this.state === "signed-out") return;
    this.fault = "";
    if (!this.dirty) {
      if (this.id && !this.running) this.become("saved");
      return;
    }
    if (!this.running) this.become(this.id || this.read().title.trim() ? "unsaved" : "new");
    this.later(quietMs);
  }

  /** Saves now; true when everything is on the server. A draft without a title waits for one. */
  async save(): Promise<boolean> {
    clearTimeout(this.timer);
    if (this.running) {
      // A save is under way: what came after it began needs one of its own.
      await this.running;
      return this.dirty ? this.save() : this.state === "saved";
    }
    if (this.state === "conflict") return false;
    if (!this.dirty && this.id) return true;
    this.fault = this.faultNow();
    if (this.fault) {
      this.changed();
      return false;
    }
    this.running = this.send();
    const done = await this.running;
    this.running = null;
    if (done && this.dirty) this.later(quietMs);
    return done;
  }

  /** After a conflict: what is here wins. */
  async keepMine(): Promise<boolean> {
    this.etag = null;
    this.state = "unsaved";
    return this.save();
  }

  private faultNow(): Draft["fault"] {
    const { title, content } = this.read();
    if (!title.trim()) return "title_missing";
    if ([...title].length > maxTitle) return "title_long";
    return new TextEncoder().encode(content).length > maxContentBytes ? "content_long" : "";
  }

  private later(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (this.read().title.trim()) void this.save();
    }, ms);
  }

  private become(state: State, why = ""): void {
    this.state = state;
    this.why = why;
    this.changed();
  }

  private async send(): Promise<boolean> {
    const copy = this.read();
    this.become("saving");
    const answer = this.id
      ? await this.call("PUT", `/v1/articles/${this.id}`, { body: copy, headers: this.etag ? { "If-Match": this.etag } : {} })
      : await this.call<{ id: string }>("POST", "/v1/articles", { body: copy, headers: { "Idempotency-Key": this.birthKey } });
    if (!answer.ok) return this.notSaved(answer);
    this.id ??= (answer.data as { id: string }).id;
    this.etag = answer.etag;
    this.saved = copy;
    this.savedAt = new Date();
    this.retryMs = firstRetryMs;
    this.become(this.dirty ? "unsaved" : "saved");
    return true;
  }

  private notSaved(answer: Answer<unknown>): boolean {
    const again = answer.status === 0 || answer.status === 429 || answer.status >= 500;
    if (answer.status === 412) this.become("conflict");
    else if (answer.status === 401) this.become("signed-out");
    else this.become(again ? "failed" : "refused", answer.why);
    if (again) {
      this.later(this.retryMs);
      this.retryMs = Math.min(this.retryMs * 2, lastRetryMs);
    }
    return false;
  }
}
