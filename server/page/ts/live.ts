// What changes by itself: one stream of events for each tab, and the parts that are read again.

import { drawCharts } from "./charts";
import { keepDetails } from "./details";
import { byId, data, home, say, tell } from "./dom";
import { applyFilter, grid } from "./filter";
import { watchOutcomes } from "./outcomes";
import { addLines, addLog, logQuery } from "./run";
import { clockNow } from "./times";

interface Change {
  topics: string[]; again?: boolean; rows?: Record<string, string>; removed?: string[];
  parts?: Record<string, string>; alerts: number; title?: string; lines?: string[];
}

export let frozen = sessionStorage.getItem("frozen") === "yes";
let source: EventSource | null = null;
let revision = data.revision ?? "";
let timer = 0;
let reading: AbortController | null = null;
let stale = false;
let lastRead = 0;
let alerts = -1;
const original = new Map<string, string>();
document.querySelectorAll<HTMLElement>("[data-live]").forEach((part) => original.set(part.id, part.outerHTML));

// A browser has six connections to a server over HTTP/1.1, for all its tabs: a tab has one
// stream, and none while nobody sees it.
export function connect(): void {
  if (frozen || source || document.hidden || !data.follow) return;
  const run = data.run ?? "";
  source = new EventSource("/events?" + new URLSearchParams(run ? { run, ...logQuery() } : { view: data.view ?? "", revision, runs: data.runs ?? "" }));
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
      const change: Change = JSON.parse(message.data);
      if (change.topics?.length || change.lines?.length && !addLines(change.lines)) readAgain();
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
  keepDetails(part, change);
  if (scroll) part.querySelector("ul")?.scrollTo(0, scroll);
  if (inside && label) {
    part.querySelector<HTMLElement>(`[aria-label=${CSS.escape(label)}], [href="${CSS.escape(label)}"]`)?.focus();
  }
}

// readAgain reads the live parts of this view again: what people have done at once, what
// changes by itself at most every two seconds.
export function readAgain(atOnce = false): void {
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
    if (part.id === "log" && addLog(next)) return;
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

export function setFrozen(on: boolean): void {
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

export function showFrozen(): void {
  const button = byId("freeze");
  button?.setAttribute("aria-pressed", String(frozen));
  if (button) button.textContent = frozen ? "Frozen" : "Freeze";
  if (frozen) tell("Shows " + clockNow());
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
