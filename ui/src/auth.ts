// Signing up and in. The forms come from the server, so that they are there at once and password managers
// know them; this checks what was typed, sends it, and names the field that is wrong.

import { call } from "./api";
import { say } from "./page";

const form = document.querySelector<HTMLFormElement>("form[data-auth]");

function errorOf(field: string): HTMLElement | null {
  return document.getElementById(`${field}-error`);
}

function input(field: string): HTMLInputElement | null {
  return form?.querySelector<HTMLInputElement>(`#${field}`) ?? null;
}

function mark(field: string, message: string): void {
  const element = input(field);
  const error = errorOf(field);
  if (error) error.textContent = message;
  if (message) element?.setAttribute("aria-invalid", "true");
  else element?.removeAttribute("aria-invalid");
}

const fields = ["email", "password", "nickname"] as const;

function checkEmail(value: string): string {
  if (!value) return say("auth.email_missing");
  return /^[^\s@]+@[^\s@]+$/.test(value) ? "" : say("auth.email_bad");
}

function checkPassword(value: string, choosing: boolean): string {
  if (!value) return say("auth.password_missing");
  const bytes = new TextEncoder().encode(value).length;
  if (choosing && bytes < 8) return say("auth.password_short");
  return bytes > 1024 ? say("auth.password_long") : "";
}

/** The faults of what was typed, by field; empty when there is none. */
function check(values: Record<string, string>, choosing: boolean): Record<string, string> {
  const faults: Record<string, string> = {};
  const add = (field: string, message: string) => {
    if (message) faults[field] = message;
  };
  add("email", checkEmail(values.email ?? ""));
  add("password", checkPassword(values.password ?? "", choosing));
  add("nickname", [...(values.nickname ?? "")].length > 64 ? say("auth.nickname_long") : "");
  return faults;
}

function showFaults(faults: Record<string, string>): boolean {
  for (const field of fields) mark(field, faults[field] ?? "");
  const first = fields.find((field) => faults[field]);
  if (first) input(first)?.focus();
  return first !== undefined;
}

/** What the server found wrong, in the reader's language where there are words for it. */
function translated(field: string, message: string): string {
  const known: Record<string, string> = {
    email: say("auth.email_bad"),
    password: say("auth.password_short"),
    nickname: say("auth.nickname_bad"),
  };
  return known[field] ?? message;
}

async function send(values: Record<string, string>, choosing: boolean, word: HTMLElement): Promise<void> {
  const account = { email: values.email, password: values.password };
  if (choosing) {
    const body = values.nickname ? { ...account, nickname: values.nickname } : account;
    const made = await call("POST", "/v1/users", { body });
    if (made.code === "email_taken") return void showFaults({ email: say("auth.email_taken") });
    const faults = Object.fromEntries(made.faults.map((fault) => [fault.field, translated(fault.field, fault.message)]));
    if (!made.ok && showFaults(faults)) return;
    if (!made.ok) return void (word.textContent = say("site.refused", { why: made.why }));
  }
  const opened = await call("POST", "/v1/sessions", { body: account });
  if (opened.ok) return location.assign(form?.dataset.next ?? "/");
  if (choosing) word.textContent = say("auth.signed_up_only");
  else if (opened.status === 401 || opened.status === 422) word.textContent = say("auth.bad_credentials");
  else word.textContent = say("site.refused", { why: opened.why });
}

function start(target: HTMLFormElement): void {
  const choosing = target.dataset.auth === "sign-up";
  const button = target.querySelector<HTMLButtonElement>("button[type=submit]");
  const word = document.getElementById("form-word");
  if (!button || !word) return;
  const idle = button.textContent;
  let running = false;
  target.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (running) return;
    const values: Record<string, string> = {};
    for (const field of fields) values[field] = input(field)?.value ?? "";
    values.email = (values.email ?? "").trim();
    values.nickname = (values.nickname ?? "").trim();
    word.textContent = "";
    if (showFaults(check(values, choosing))) return;
    running = true;
    button.setAttribute("aria-disabled", "true");
    button.textContent = say(choosing ? "auth.signing_up" : "auth.signing_in");
    await send(values, choosing, word);
    running = false;
    button.removeAttribute("aria-disabled");
    button.textContent = idle;
  });
  for (const field of fields) input(field)?.addEventListener("input", () => mark(field, ""));
}

if (form) start(form);
