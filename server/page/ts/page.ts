// The script of the status page. The page works without it; with it, outcomes have colors,
// filters need no request, changes come by themselves, and harm is asked about first.

interface Field { Name: string; Value: string }
interface Answer {
  ok: boolean; ask?: boolean; reason?: boolean; title: string; text: string; names?: string[]; more?: number;
  link?: string; action?: string; fields?: Field[];
}
interface Progress { title: string; ended: number; of: number }
interface Change {
  topics: string[]; again?: boolean; rows?: Record<string, string>; removed?: string[];
  parts?: Record<string, string>; alerts: number; title?: string;
}
interface Series { times: number[]; lag: number[]; waiting: number[]; rate: number[] }
declare const uPlot: any;

const data = document.body.dataset;
const home = data.view === "home";
const byId = <E extends HTMLElement>(id: string) => document.getElementById(id) as E | null;
document.documentElement.classList.add("js");

// ---- outcomes -----------------------------------------------------------------------

// A letter with its meaning, as the server has them.
const letters: { Letter: string; Text: string }[] = JSON.parse(data.letters ?? "[]");
const meaning = Object.fromEntries(letters.map((one) => [one.Letter, one.Text]));

// Cells are made for what is on the screen alone: a thousand rows have thirty thousand.
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) {
      seen.unobserve(entry.target);
      paint(entry.target as HTMLElement);
    }
  }
}, { rootMargin: "300px" });

function paint(cell: HTMLElement): void {
  const letters = cell.textContent ?? "";
  if (cell.firstElementChild || !letters) return;
  const cells = document.createDocumentFragment();
  for (const letter of letters) {
    const one = document.createElement("span");
    one.className = "c " + letter;
    one.textContent = letter;
    one.title = meaning[letter] ?? letter;
    cells.append(one);
  }
  cell.replaceChildren(cells);
}

function watchOutcomes(root: ParentNode): void {
  root.querySelectorAll<HTMLElement>(".o").forEach((cell) => seen.observe(cell));
}

// A click on an outcome leads to its run. Starts without a run do not count.
document.addEventListener("click", (event) => {
  const cell = (event.target as HTMLElement).closest<HTMLElement>(".o .c");
  if (!cell) return;
  const outcomes = cell.parentElement as HTMLElement;
  const id = outcomes.dataset.job ?? outcomes.closest("tr")?.id.slice(2);
  if (!id) return;
  if (cell.textContent === "M") {
    location.assign("/jobs/" + encodeURIComponent(id) + "#starts");
    return;
  }
  let back = 0;
  for (let next = cell.nextElementSibling; next; next = next.nextElementSibling) if (next.textContent !== "M") back++;
  location.assign("/jobs/" + encodeURIComponent(id) + "/outcomes/" + back);
});

// ---- filter: the address has it, and nothing but people changes it ---------------------

const names = ["q", "status", "type", "mode", "owner", "provider"];
const grid = byId<HTMLTableElement>("grid");
const filter = byId<HTMLFormElement>("filter");

function chosen(): Record<string, string> {
  const values = new URLSearchParams(location.search);
  return Object.fromEntries(names.map((name) => [name, (values.get(name) ?? "").trim()]));
}

function holds(row: HTMLTableRowElement, want: Record<string, string>): boolean {
  const [type, mode, owner, provider] = (row.dataset.f ?? "").split("|");
  const status = row.className.replace(/^s-(\S+).*/, "$1").replace(/-/g, " ");
  const query = want.q.toLowerCase();
  const is = (name: string, have: string) => !want[name] || want[name] === have;
  return [row.id.slice(2), type, owner].some((text) => text.toLowerCase().includes(query)) &&
    is("status", status) && is("type", type) && is("mode", mode) && is("owner", owner) && is("provider", provider);
}

function applyFilter(): void {
  if (!grid) return;
  const want = chosen();
  const counts: Record<string, number> = {};
  let shown = 0;
  for (const row of Array.from(grid.tBodies[0].rows)) {
    const fits = holds(row, want);
    if (row.hidden === fits) row.hidden = !fits;
    if (fits) shown++;
    const status = row.className.replace(/^s-(\S+).*/, "$1").replace(/-/g, " ");
    counts[status] = (counts[status] ?? 0) + 1;
  }
  const all = grid.tBodies[0].rows.length;
  const text = `${shown} of ${all}`;
  const label = byId("shown");
  if (label && label.textContent !== text) label.textContent = text;
  const none = byId("none");
  if (none) none.hidden = shown > 0;
  document.querySelectorAll<HTMLAnchorElement>("[data-status]").forEach((chip) => {
    const status = chip.dataset.status ?? "";
    if (status === want.status) chip.setAttribute("aria-current", "true");
    else chip.removeAttribute("aria-current");
    const count = chip.querySelector(".count");
    if (count) count.textContent = String(status ? counts[status] ?? 0 : all);
    chip.href = address({ status });
  });
  document.querySelectorAll<HTMLAnchorElement>("[data-runs]").forEach((link) => { link.href = address({ runs: link.dataset.runs ?? "" }); });
  for (const name of names) {
    document.querySelectorAll<HTMLInputElement | HTMLSelectElement>(`#bulk [name=${name}], #filter [name=${name}]`).forEach((input) => {
      if (input !== document.activeElement && input.value !== want[name]) input.value = want[name];
    });
  }
}

function address(change: Record<string, string>): string {
  const values = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(change)) {
    if (value) values.set(name, value);
    else values.delete(name);
  }
  const text = values.toString();
  return text ? "/?" + text : "/";
}

function setFilter(change: Record<string, string>, keep: boolean): void {
  const url = address(change);
  if (keep) history.pushState(null, "", url);
  else history.replaceState(null, "", url);
  applyFilter();
}

if (home && filter) {
  filter.addEventListener("input", (event) => {
    const input = event.target as HTMLInputElement;
    setFilter({ [input.name]: input.value.trim() }, input.tagName === "SELECT");
  });
  filter.addEventListener("submit", (event) => event.preventDefault());
  document.querySelectorAll<HTMLAnchorElement>("[data-status]").forEach((chip) => chip.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    setFilter({ status: chip.dataset.status ?? "" }, true);
  }));
  window.addEventListener("popstate", applyFilter);
}

// ---- what changes ---------------------------------------------------------------------

let frozen = sessionStorage.getItem("frozen") === "yes";
let source: EventSource | null = null;
let revision = data.revision ?? "";
let timer = 0;
let reading: AbortController | null = null;
let stale = false;
let lastRead = 0;
let alerts = -1;
const original = new Map<string, string>();
document.querySelectorAll<HTMLElement>("[data-live]").forEach((part) => original.set(part.id, part.outerHTML));

function tell(text: string): void {
  const state = byId("link-state");
  if (state && state.textContent !== text) state.textContent = text;
}

function say(text: string): void {
  const said = byId("said");
  if (said) said.textContent = text;
}

// A browser has six connections to a server over HTTP/1.1, for all its tabs: a tab has one
// stream, and none while nobody sees it.
function connect(): void {
  if (frozen || source || document.hidden || !data.follow) return;
  const run = data.run ?? "";
  source = new EventSource("/events?" + new URLSearchParams(run ? { run } : { view: data.view ?? "", revision, runs: data.runs ?? "" }));
  source.onopen = () => tell("Live");
  source.onerror = () => {
    if (!frozen) tell("No connection; trying again");
    // EventSource gives up after an answer with an error.
    if (source?.readyState === EventSource.CLOSED) {
      disconnect();
      window.setTimeout(connect, 3000);
    }
  };
  source.onmessage = (message) => {
    if (frozen) return;
    if (run) {
      readAgain();
      return;
    }
    revision = message.lastEventId;
    take(JSON.parse(message.data));
  };
}

function disconnect(): void {
  source?.close();
  source = null;
}

function take(change: Change): void {
  if (alerts >= 0 && change.alerts !== alerts) {
    say(change.alerts === 1 ? "1 alert needs you" : `${change.alerts} alerts need you`);
  }
  alerts = change.alerts;
  if (change.again) {
    readAgain();
    return;
  }
  if (!home) {
    const follows = (data.follow ?? "").split(" ");
    if (change.topics.some((topic) => follows.includes(topic))) readAgain();
    return;
  }
  if (change.title) document.title = change.title + " · Dendra Jobs";
  for (const [id, html] of Object.entries(change.parts ?? {})) {
    const part = byId(id);
    if (part) keepFocus(part, () => { if (part.innerHTML !== html) part.innerHTML = html; });
  }
  const body = grid?.tBodies[0];
  if (!body) return;
  for (const id of change.removed ?? []) byId("j-" + id)?.remove();
  const rows = Object.entries(change.rows ?? {});
  for (const [id, html] of rows) {
    const holder = document.createElement("template");
    holder.innerHTML = html;
    const row = holder.content.firstElementChild as HTMLTableRowElement;
    const old = byId("j-" + id);
    if (old) {
      if (old.hasAttribute("aria-current")) row.setAttribute("aria-current", "true");
      const focused = old.contains(document.activeElement);
      old.replaceWith(row);
      if (focused) row.querySelector("a")?.focus();
    } else {
      const next = Array.from(body.rows).find((other) => other.id.slice(2) > id);
      body.insertBefore(row, next ?? null);
    }
    if (rows.length <= 50) row.classList.add("changed");
    watchOutcomes(row);
  }
  applyFilter();
}

// keepFocus changes a part, and leaves the focus and open texts where they were.
function keepFocus(part: HTMLElement, change: () => void): void {
  const active = document.activeElement as HTMLElement | null;
  const inside = !!active && part.contains(active);
  const label = inside ? active!.getAttribute("aria-label") ?? active!.getAttribute("href") ?? "" : "";
  const scroll = part.querySelector("ul")?.scrollTop ?? 0;
  change();
  if (scroll) part.querySelector("ul")?.scrollTo(0, scroll);
  if (inside && label) {
    part.querySelector<HTMLElement>(`[aria-label=${CSS.escape(label)}], [href="${CSS.escape(label)}"]`)?.focus();
  }
}

// readAgain reads the live parts of this view again: what people have done at once, what
// changes by itself at most every two seconds.
function readAgain(atOnce = false): void {
  stale = true;
  if (frozen || timer && !atOnce) return;
  window.clearTimeout(timer);
  const due = atOnce ? 300 : Math.max(300, lastRead + 2000 - Date.now());
  timer = window.setTimeout(async () => {
    timer = 0;
    stale = false;
    lastRead = Date.now();
    reading?.abort();
    const mine = reading = new AbortController();
    try {
      const answer = await fetch(location.href, { signal: mine.signal, headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const text = await answer.text();
      // What came too late, or while the page is frozen, is not shown.
      if (frozen || mine.signal.aborted) return;
      const fresh = new DOMParser().parseFromString(text, "text/html");
      if (home && older(fresh.body.dataset.revision ?? "", revision)) readAgain(); // An event was faster.
      else replaceParts(fresh);
    } catch {
      if (!mine.signal.aborted && !frozen) tell("No connection; trying again");
    }
  }, due);
}

// older says that a revision is one before another, of the same process.
function older(one: string, other: string): boolean {
  const [epoch, number] = one.split("-");
  const [otherEpoch, otherNumber] = other.split("-");
  return epoch === otherEpoch && Number(number) < Number(otherNumber);
}

function replaceParts(fresh: Document): void {
  if (home && grid) {
    const body = fresh.querySelector("#grid tbody");
    if (body) {
      const mark = grid.querySelector("tr[aria-current]")?.id;
      keepFocus(grid, () => grid.tBodies[0].replaceWith(document.importNode(body, true)));
      if (mark) byId(mark)?.setAttribute("aria-current", "true");
      watchOutcomes(grid);
      applyFilter();
    }
  }
  document.querySelectorAll<HTMLElement>("[data-live]").forEach((part) => {
    const next = fresh.getElementById(part.id);
    if (!next || original.get(part.id) === next.outerHTML) return;
    original.set(part.id, next.outerHTML);
    keepFocus(part, () => { part.innerHTML = next.innerHTML; });
    watchOutcomes(part);
  });
  document.title = fresh.title;
  const run = fresh.body.dataset.run ?? "";
  if (data.run && !run) { // It has ended: others may retry it.
    data.run = run;
    disconnect();
    connect();
  }
  void drawCharts();
}

function setFrozen(on: boolean): void {
  frozen = on;
  sessionStorage.setItem("frozen", on ? "yes" : "no");
  showFrozen();
  if (on) {
    disconnect();
    reading?.abort();
    window.clearTimeout(timer);
    timer = 0;
    say("Frozen");
  } else {
    say("Live again");
    connect();
    readAgain(true);
  }
}

function showFrozen(): void {
  const button = byId("freeze");
  button?.setAttribute("aria-pressed", String(frozen));
  if (button) button.textContent = frozen ? "Frozen" : "Freeze";
  if (frozen) tell("Shows " + new Date().toLocaleTimeString());
}

byId("freeze")?.addEventListener("click", () => setFrozen(!frozen));
// A page that was away may have missed something.
for (const name of ["focus", "online"]) window.addEventListener(name, () => { if (!frozen && (stale || !source)) { connect(); readAgain(); } });
document.addEventListener("visibilitychange", () => {
  if (frozen) return;
  if (document.hidden) {
    disconnect();
    return;
  }
  connect();
  if (!home) readAgain(); // The grid gets what it missed by its revision.
});
window.addEventListener("pagehide", disconnect);
window.addEventListener("pageshow", (event) => { if (event.persisted && !frozen) { connect(); readAgain(); } });

// ---- times ----------------------------------------------------------------------------

function span(seconds: number): string {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

function updateTimes(): void {
  if (frozen || document.hidden) return;
  for (const time of Array.from(document.querySelectorAll<HTMLTimeElement>("time"))) {
    const away = (Date.parse(time.dateTime) - Date.now()) / 1000;
    // What lies ahead, and should have been, is now.
    const ahead = time.closest("#grid") !== null;
    const text = away >= 1 ? "in " + span(away) : away > -1 || ahead ? "now" : span(-away) + " ago";
    if (time.textContent !== text) time.textContent = text;
  }
}
window.setInterval(updateTimes, 5000);

// ---- actions --------------------------------------------------------------------------

document.addEventListener("submit", (event) => {
  const form = event.target as HTMLFormElement;
  if (!form.hasAttribute("data-verb")) return;
  event.preventDefault();
  const values = new URLSearchParams(new FormData(form, (event as SubmitEvent).submitter) as any);
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

function element(tag: string, text: string): HTMLElement {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
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
  const label = element("label", "Why ");
  label.append(why);
  dialog.replaceChildren(title, element("p", answer.text), ...list(answer), ...(answer.reason ? [label] : []), form);
  dialog.returnValue = "";
  dialog.onclose = () => {
    if (dialog.returnValue !== "yes") return;
    const fields = new URLSearchParams((answer.fields ?? []).map((f) => [f.Name, f.Value]));
    if (answer.reason) fields.set("reason", why.value);
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

// ---- keys -----------------------------------------------------------------------------

function step(by: number): void {
  const rows = Array.from(document.querySelectorAll<HTMLTableRowElement>("main tbody tr:not([hidden])")).filter((row) => row.querySelector("a"));
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.hasAttribute("aria-current"));
  const row = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + by))];
  rows.forEach((other) => other.removeAttribute("aria-current"));
  row.setAttribute("aria-current", "true");
  row.querySelector<HTMLElement>("th a, a")?.focus();
  row.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  const at = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (at.matches("input, select, textarea")) {
    if (event.key === "Escape") at.blur();
    return;
  }
  switch (event.key) {
    case "j": step(1); break;
    case "k": step(-1); break;
    case "f": setFrozen(!frozen); break;
    case "?": byId<HTMLDialogElement>("keys")?.showModal(); break;
    case "/":
      if (byId("q")) byId("q")?.focus();
      else location.assign("/?search");
      break;
    default: return;
  }
  event.preventDefault();
});
byId("help")?.addEventListener("click", () => byId<HTMLDialogElement>("keys")?.showModal());
if (location.search === "?search") byId("q")?.focus();

// ---- charts ---------------------------------------------------------------------------

const charts = new Map<string, any>();

async function drawCharts(): Promise<void> {
  const places = Array.from(document.querySelectorAll<HTMLElement>("[data-load]"));
  if (!places.length || typeof uPlot === "undefined") return;
  const answer = await fetch("/loads/samples");
  if (!answer.ok) return;
  const all: Record<string, Series> = await answer.json();
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(name).trim();
  for (const place of places) {
    const name = place.dataset.load ?? "";
    const series = all[name];
    if (!series) continue;
    const values = [series.times, series.lag];
    const known = charts.get(name);
    if (known) {
      known.setData(values);
      continue;
    }
    const axis = { stroke: color("--dim"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
    charts.set(name, new uPlot({
      width: place.clientWidth, height: 170, cursor: { show: false }, legend: { show: false },
      scales: { y: { range: (_: unknown, __: number, most: number) => [0, Math.max(10, most * 1.1)] } },
      axes: [axis, { ...axis, size: 60, values: (_: unknown, ticks: number[]) => ticks.map((tick) => span(tick)) }],
      series: [{}, { stroke: color("--busy"), width: 2, fill: color("--busy-back"), points: { show: series.times.length < 3 } }],
    }, values, place));
  }
}
if (data.view === "loads") window.setInterval(() => { if (!frozen && !document.hidden) void drawCharts(); }, 10000);

// ---- begin ----------------------------------------------------------------------------

watchOutcomes(document);
applyFilter();
showFrozen();
void drawCharts();
connect();
