// What changes by itself: one stream of events for each tab, and the parts that are read again.

import { leaveCard } from "./card";
import { keepCell, watchCells } from "./cells";
import { drawCharts, takeCharts } from "./charts";
import { keepDetails } from "./details";
import { byId, data, home, say, tell } from "./dom";
import { applyFilter, grid } from "./filter";
import { watchOutcomes } from "./outcomes";
import { addLines, addLog, logQuery } from "./run";
import { clockNow } from "./times";

interface Change {
  topics: string[]; again?: boolean; rows?: Record<string, string>; removed?: string[]; ended?: number;
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
  source = new EventSource("/events?" + streamOf(run));
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

// streamOf is what a stream is asked for: of the grid, with what decides on its rows.
function streamOf(run: string): URLSearchParams {
  if (run) return new URLSearchParams({ run, ...logQuery() });
  const asked = new URLSearchParams({ view: data.view ?? "", revision, runs: data.runs ?? "" });
  const shown = new URLSearchParams(location.search);
  for (const name of home ? ["columns", "sort", "ended", "items"] : []) {
    if (shown.has(name)) asked.set(name, shown.getAll(name).join(","));
  }
  return asked;
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
  if (!grid) return;
  for (const id of change.removed ?? []) byId(id)?.remove();
  const rows = Object.entries(change.rows ?? {});
  for (const [id, html] of rows) keepCell(() => replaceRow(id, html, rows.length <= 50));
  const ended = document.querySelector("#ended .count");
  if (ended) ended.textContent = String(change.ended ?? 0);
  leaveCard();
  applyFilter();
}

// replaceRow puts a row in the place of its former state, or where it belongs.
function replaceRow(id: string, html: string, mark: boolean): void {
  const body = grid?.querySelector<HTMLTableSectionElement>(id.startsWith("q-") ? "tbody.queues" : "tbody.jobs");
  const holder = document.createElement("template");
  holder.innerHTML = html;
  const row = holder.content.firstElementChild as HTMLTableRowElement | null;
  if (!body || !row) return;
  const old = byId(id);
  if (old?.hasAttribute("aria-current")) row.setAttribute("aria-current", "true");
  // A row does not move away from under the focus.
  if (old && (old.dataset.k === row.dataset.k || old.contains(document.activeElement))) {
    old.replaceWith(row);
  } else {
    old?.remove();
    const next = Array.from(body.rows).find((other) => order(other, row) > 0);
    body.insertBefore(row, next ?? null);
  }
  if (mark) row.classList.add("changed");
  watchCells(row);
  watchOutcomes(row);
}

// order is that of the rows: by what the grid is sorted by, then by their ids.
function order(a: HTMLElement, b: HTMLElement): number {
  const [one, other] = [a.dataset.k ?? "", b.dataset.k ?? ""];
  if (!one !== !other) return one ? -1 : 1;
  const way = data.sort?.startsWith("-") ? -1 : 1;
  if (one !== other) return one < other ? -way : way;
  return a.id < b.id ? -1 : 1;
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
    const mark = grid.querySelector("tr[aria-current]")?.id;
    keepCell(() => Array.from(fresh.querySelectorAll("#grid tbody")).forEach((body, at) => {
      grid.tBodies[at].replaceWith(document.importNode(body, true));
      watchCells(grid);
      watchOutcomes(grid);
    }));
    if (mark) byId(mark)?.setAttribute("aria-current", "true");
    applyFilter();
  }
  takeCharts(fresh);
  document.querySelectorAll<HTMLElement>("[data-live]").forEach((part) => {
    const next = fresh.getElementById(part.id);
    if (!next || original.get(part.id) === next.outerHTML) return;
    original.set(part.id, next.outerHTML);
    if (part.id === "log" && addLog(next)) return;
    keepCell(() => keepFocus(part, () => { part.innerHTML = next.innerHTML; }));
    watchOutcomes(part);
  });
  leaveCard();
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
