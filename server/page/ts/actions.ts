// Verbs: harm is asked about first, and what came of it is told.

import { byId, element, say } from "./dom";
import { readAgain } from "./live";

interface Field { Name: string; Value: string }
interface Answer {
  ok: boolean; ask?: boolean; reason?: boolean; lasts?: Field[]; title: string; text: string; names?: string[]; more?: number;
  link?: string; action?: string; fields?: Field[];
}
interface Progress { title: string; ended: number; of: number }

// With Shift every verb asks why, also one that asks nothing else.
let asksWhy = false;
document.addEventListener("click", (event) => { asksWhy = event.shiftKey; }, true);

document.addEventListener("submit", (event) => {
  const form = event.target as HTMLFormElement;
  if (!form.hasAttribute("data-verb")) return;
  event.preventDefault();
  const values = new URLSearchParams(new FormData(form, (event as SubmitEvent).submitter) as any);
  if (asksWhy) values.set("why", "ask");
  asksWhy = false;
  void send(form.getAttribute("action") ?? "", values);
});

async function send(action: string, values: URLSearchParams): Promise<void> {
  const stop = new AbortController();
  let latest: Progress | null = null;
  let answer: Answer;
  try {
    const response = await fetch(action, { method: "POST", signal: stop.signal, headers: { Accept: "application/json" }, body: values });
    answer = await read(response, (progress) => {
      latest = progress;
      showProgress(progress, stop);
    });
  } catch {
    answer = { ok: false, title: "Not known", text: brokenOff(latest, stop.signal.aborted) };
  }
  byId("message")?.removeAttribute("aria-busy");
  if (answer.ask) {
    ask(answer);
    return;
  }
  show(answer);
  if (answer.ok || latest) readAgain(true);
}

// read reads an answer: lines of progress, if there are any, and what came of it.
async function read(response: Response, told: (progress: Progress) => void): Promise<Answer> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  let answer: Answer | null = null;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (text + value).split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) {
      const message = JSON.parse(line);
      if (message.of) told(message);
      else answer = message;
    }
  }
  if (!answer) throw new Error("the answer has no end");
  return answer;
}

function brokenOff(latest: Progress | null, asked: boolean): string {
  if (!latest) return "The server did not answer. It is not known whether anything was done.";
  const why = asked ? "It was stopped" : "The connection broke";
  return `${why}: ${latest.ended} of ${latest.of} jobs have an answer. The server ends what was under way, and does nothing to the others.`;
}

// showProgress tells how far it is, with a button that stops it.
function showProgress(progress: Progress, stop: AbortController): void {
  const message = byId("message");
  if (!message) return;
  const text = `${progress.title}: ${progress.ended} of ${progress.of} jobs`;
  const known = message.querySelector<HTMLElement>("progress + span");
  if (message.getAttribute("aria-busy") && known) {
    known.textContent = text;
    message.querySelector("progress")!.value = progress.ended;
    return;
  }
  const bar = document.createElement("progress");
  bar.max = progress.of;
  bar.value = progress.ended;
  bar.setAttribute("aria-label", progress.title);
  const line = document.createElement("div");
  line.append(bar, element("span", text));
  const button = element("button", "Stop") as HTMLButtonElement;
  button.id = "stop";
  button.onclick = () => stop.abort();
  message.className = "";
  message.setAttribute("aria-busy", "true"); // Assistive technology tells the beginning and the end.
  message.replaceChildren(line, button);
  message.hidden = false;
}

function list(answer: Answer): HTMLElement[] {
  if (!answer.names?.length) return [];
  const items = document.createElement("ul");
  for (const name of answer.names) items.append(element("li", name));
  return answer.more ? [items, element("p", `And ${answer.more} more.`)] : [items];
}

function labeled(text: string, input: HTMLElement): HTMLElement {
  const label = element("label", text);
  label.append(input);
  return label;
}

function ask(answer: Answer): void {
  const dialog = byId<HTMLDialogElement>("ask");
  if (!dialog) return;
  const title = element("h2", answer.title);
  title.id = "ask-title";
  const form = document.createElement("form");
  form.method = "dialog";
  form.className = "buttons";
  const no = element("button", "Leave it") as HTMLButtonElement;
  const yes = element("button", answer.title) as HTMLButtonElement;
  yes.className = "harm";
  yes.value = "yes";
  yes.id = "confirm";
  form.append(no, yes);
  const why = document.createElement("input");
  why.name = "reason";
  why.maxLength = 250;
  const period = document.createElement("select");
  for (const { Name, Value } of answer.lasts ?? []) period.add(new Option(Name, Value));
  const inputs = [...(answer.reason ? [labeled("Why ", why)] : []), ...(answer.lasts ? [labeled("For ", period)] : [])];
  dialog.replaceChildren(title, element("p", answer.text), ...list(answer), ...inputs, form);
  dialog.returnValue = "";
  dialog.onclose = () => {
    if (dialog.returnValue !== "yes") return;
    const fields = new URLSearchParams((answer.fields ?? []).map((f) => [f.Name, f.Value]));
    if (answer.reason) fields.set("reason", why.value);
    if (answer.lasts) fields.set("for", period.value);
    void send(answer.action ?? "", fields);
  };
  dialog.showModal();
  no.focus();
}

function show(answer: Answer): void {
  const message = byId("message");
  if (!message) return;
  const text = document.createElement("div");
  text.append(element("span", answer.text), ...list(answer));
  if (answer.link) {
    const link = element("a", "Show it") as HTMLAnchorElement;
    link.href = answer.link;
    text.append(" ", link);
  }
  const close = element("button", "Close") as HTMLButtonElement;
  close.onclick = () => { message.hidden = true; };
  message.className = answer.ok ? "" : "failed";
  message.replaceChildren(text, close);
  message.hidden = false;
}

document.addEventListener("click", (event) => {
  const button = (event.target as HTMLElement).closest<HTMLElement>("[data-copy], [data-copy-from]");
  if (!button) return;
  const text = button.dataset.copy ?? byId(button.dataset.copyFrom ?? "")?.textContent ?? "";
  const told = () => say((button.ariaLabel ?? "").replace("Copy", "Copied"));
  // Without TLS browsers have no clipboard: the name is marked, for people to copy.
  if (navigator.clipboard) void navigator.clipboard.writeText(text).then(told, () => mark(button));
  else mark(button);
});

function mark(button: HTMLElement): void {
  const name = byId(button.dataset.copyFrom ?? "") ?? button.parentElement?.querySelector("h1, code");
  if (name) getSelection()?.selectAllChildren(name);
}
