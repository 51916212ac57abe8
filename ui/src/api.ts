// Requests to the API. Every answer is a value: nothing here throws but an abort.

import { say } from "./page";

export interface FieldFault {
  field: string;
  message: string;
}

export interface Answer<T> {
  ok: boolean;
  /** 0 when the server could not be reached. */
  status: number;
  data: T;
  etag: string | null;
  /** Why not, as a sentence in the reader's language. */
  why: string;
  code: string;
  faults: FieldFault[];
}

function reason(status: number): string {
  if (status === 0) return say("site.offline");
  if (status === 429) return say("site.too_many");
  if (status === 503) return say("site.busy");
  return say("site.unknown");
}

export async function call<T = unknown>(
  method: string,
  path: string,
  options: { body?: unknown; headers?: Record<string, string>; signal?: AbortSignal; keepalive?: boolean } = {},
): Promise<Answer<T>> {
  const headers: Record<string, string> = { "X-Weir-Page": "1", Accept: "application/json", ...options.headers };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  const init: RequestInit = { method, headers, credentials: "same-origin" };
  if (options.body !== undefined) init.body = JSON.stringify(options.body);
  if (options.signal) init.signal = options.signal;
  if (options.keepalive) init.keepalive = true;

  let response: Response;
  let text: string;
  try {
    response = await fetch(path, init);
    text = await response.text();
  } catch (error) {
    if (options.signal?.aborted) throw error;
    return { ok: false, status: 0, data: {} as T, etag: null, why: reason(0), code: "", faults: [] };
  }
  let data: unknown = {};
  try {
    if (text) data = JSON.parse(text);
  } catch {
    // An answer from something in between (a proxy's page): the status tells enough.
  }
  const problem = data as { code?: string; errors?: FieldFault[] };
  return {
    ok: response.ok,
    status: response.status,
    data: data as T,
    etag: response.headers.get("ETag"),
    why: response.ok ? "" : reason(response.status),
    code: problem.code ?? "",
    faults: problem.errors ?? [],
  };
}
