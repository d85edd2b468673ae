// All jobs over one clock: a picture that is drawn of one answer, and a span of time that
// people choose by the pointer or by keys. The address has the span, the list below its runs.

import { byId, data, tell } from "./dom";
import { address, updateLinks } from "./filter";
import { frozen, readAgain } from "./live";
import { meaning } from "./outcomes";

interface Run { l: string; s: number; e?: number }
interface Job { id: string; runs: Run[]; next: number[] }
interface Answer { now: number; jobs: Job[]; note?: string }

const place = byId("timeline");
const canvas = byId<HTMLCanvasElement>("lanes");
const axis = byId("axis");

// Heights in pixels: of the counts of failures, of the axis below them, and of all rows.
const counts = 46;
const ticks = 20;
const top = counts + ticks;
const allRows = 2400;
const label = 11; // the least height of a row that has its name beside it
const every = 15000; // milliseconds between two looks
const failures = "FTK";

let answer: Answer = { now: 0, jobs: [] };
let begin = Number(place?.dataset.begin ?? 0);
let end = Number(place?.dataset.end ?? 0);
let rowHeight = 12;
let gutter = 0;
let width = 0;
// The span that is chosen, in seconds, and where the cursor of the keys is.
let from = 0;
let to = 0;
let cursor = 0;
let anchor = 0;

const x = (at: number) => gutter + (at - begin) / (end - begin) * (width - gutter);
const timeAt = (px: number) => begin + (px - gutter) / (width - gutter) * (end - begin);

// bin is the length of a bin in seconds: whole minutes, so that an address can name it.
const bin = () => Math.max(1, Math.ceil((end - begin) / 60 / 84)) * 60;
const snap = (at: number) => Math.floor(at / bin()) * bin();
const clamp = (at: number) => Math.min(Math.max(at, snap(begin)), snap(end) + bin());

const two = (n: number) => String(n).padStart(2, "0");
function clock(at: number): string {
  const t = new Date(at * 1000);
  return `${two(t.getUTCHours())}:${two(t.getUTCMinutes())}`;
}
const minute = (at: number) => new Date(at * 1000).toISOString().slice(0, 16);
const parse = (text: string | null) => text ? Date.parse(text.slice(0, 16) + ":00Z") / 1000 : 0;

// failed are the failed runs by the bin in which they ended.
function failed(): Map<number, number> {
  const bins = new Map<number, number>();
  for (const job of answer.jobs) {
    for (const run of job.runs) {
      const at = snap(run.e ?? run.s);
      if (failures.includes(run.l)) bins.set(at, (bins.get(at) ?? 0) + 1);
    }
  }
  return bins;
}

function draw(): void {
  if (!canvas || !place) return;
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(name).trim();
  width = place.clientWidth;
  rowHeight = Math.max(3, Math.min(16, Math.floor(allRows / Math.max(1, answer.jobs.length))));
  gutter = rowHeight < label || width < 700 ? 0 : 230;
  const height = top + Math.max(1, answer.jobs.length) * rowHeight;
  const scale = window.devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  if (axis) {
    axis.style.left = gutter + "px";
    axis.style.height = top + "px";
  }
  const paint = canvas.getContext("2d");
  if (!paint) return;
  paint.scale(scale, scale);
  paint.font = "11px system-ui, sans-serif";
  const rect = (at: number, until: number, y: number, least: number, high: number, fill: string) => {
    const left = Math.max(gutter, x(at));
    paint.fillStyle = fill;
    paint.fillRect(left, y, Math.max(least, Math.min(width, x(until)) - left), high);
  };
  if (to > from) rect(from, to, 0, 2, height, color("--busy-back"));
  drawAxis(paint, color, height);
  const bar = Math.max(2, rowHeight - (rowHeight > 4 ? 2 : 1));
  answer.jobs.forEach((job, n) => {
    const y = top + n * rowHeight;
    if (gutter) {
      paint.fillStyle = color("--dim");
      paint.textBaseline = "middle";
      paint.fillText(job.id.length > 36 ? "…" + job.id.slice(-35) : job.id, 0, y + rowHeight / 2);
    }
    paint.strokeStyle = color("--dim");
    for (const at of job.next) paint.strokeRect(x(at) + 0.5, y + 0.5, 3, bar - 1);
    const ofRun = (run: Run) => failures.includes(run.l) ? "--bad" : run.l === "C" ? "--good-back" : "RW".includes(run.l) ? "--busy" : "--warn";
    for (const run of job.runs) if (!failures.includes(run.l)) rect(run.s, run.e ?? answer.now, y, 2, bar, color(ofRun(run)));
  });
  // Failures lie on top, and are never narrower than can be seen.
  answer.jobs.forEach((job, n) => {
    for (const run of job.runs) if (failures.includes(run.l)) rect(run.s, run.e ?? answer.now, top + n * rowHeight, 4, bar, color("--bad"));
  });
  line(paint, x(answer.now), 0, height, color("--text"));
  if (document.activeElement === axis) line(paint, x(cursor), 0, height, color("--focus"));
}

function line(paint: CanvasRenderingContext2D, at: number, y: number, until: number, color: string): void {
  paint.fillStyle = color;
  paint.fillRect(Math.round(at), y, 1, until - y);
}

// drawAxis draws the times, and above them how many runs failed.
function drawAxis(paint: CanvasRenderingContext2D, color: (name: string) => string, height: number): void {
  const bins = failed();
  const most = Math.max(1, ...bins.values());
  paint.textAlign = "center";
  paint.textBaseline = "alphabetic";
  for (const [at, count] of bins) {
    const high = Math.max(3, count / most * (counts - 14));
    const left = x(at);
    const wide = Math.max(3, x(at + bin()) - left - 1);
    paint.fillStyle = color("--bad");
    paint.fillRect(left, counts - high, wide, high);
    if (count === most || wide > 14) paint.fillText(String(count), left + wide / 2, counts - high - 3);
  }
  const room = Math.max(1, Math.floor((width - gutter) / 70));
  const step = [300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400].find((s) => (end - begin) / s <= room) ?? 86400;
  for (let at = Math.ceil(begin / step) * step; at <= end; at += step) {
    line(paint, x(at), counts, height, color("--line"));
    paint.fillStyle = color("--dim");
    if (x(at) > gutter + 16 && x(at) < width - 16) paint.fillText(clock(at), x(at), top - 6);
  }
  line(paint, gutter, 0, counts, color("--line"));
  paint.fillRect(gutter, counts, width - gutter, 1);
  paint.textAlign = "left";
}

function plural(n: number, one: string): string { return `${n} ${one}${n === 1 ? "" : "s"}`; }

function sum(): void {
  const bins = failed();
  const runs = answer.jobs.reduce((all, job) => all + job.runs.length, 0);
  const coming = answer.jobs.reduce((all, job) => all + job.next.length, 0);
  const bad = [...bins.values()].reduce((all, n) => all + n, 0);
  const [at, most] = [...bins].reduce((best, next) => next[1] > best[1] ? next : best, [0, 0]);
  let text = `${plural(runs, "run")} of ${plural(answer.jobs.length, "job")}, ${bad} failed`;
  if (most > 1) text += `, ${most} of them from ${clock(at)} to ${clock(at + bin())} UTC`;
  text += `. ${plural(coming, "start")} to come.`;
  if (answer.note) text += " " + answer.note;
  const told = byId("timeline-sum");
  if (told && told.textContent !== text) told.textContent = text;
}

async function look(): Promise<void> {
  try {
    const got = await fetch("/timeline?" + new URLSearchParams(location.search));
    if (!got.ok) throw new Error(await got.text());
    const next: Answer = await got.json();
    if (frozen) return;
    answer = next;
    sum();
    draw();
    tell(`As of ${clock(answer.now)} UTC`);
  } catch {
    tell("No connection; trying again");
  }
}

let timer = 0;

// choose takes a span over: the address names it, and the list follows.
function choose(since: number, until: number): void {
  [from, to] = until > since ? [since, until] : [0, 0];
  const chosen = to ? { since: minute(from), until: minute(to) } : { since: "", until: "" };
  history.replaceState(null, "", address(chosen));
  updateLinks();
  const form = byId<HTMLFormElement>("filter");
  for (const [name, value] of Object.entries(chosen)) {
    const field = document.querySelector<HTMLInputElement>(`#span [name=${name}]`);
    if (field && value) field.value = value;
    let hidden = form?.querySelector<HTMLInputElement>(`[name=${name}]`);
    if (form && !hidden) {
      hidden = document.createElement("input");
      hidden.type = "hidden";
      hidden.name = name;
      form.append(hidden);
    }
    if (hidden) {
      hidden.value = value;
      hidden.disabled = !value;
    }
  }
  draw();
  window.clearTimeout(timer);
  timer = window.setTimeout(() => readAgain(true), 300);
}

function tellAt(text: string): void {
  const told = byId("timeline-at");
  if (told) told.textContent = text;
}

// nearest is the run at a point of the picture, and its job.
function nearest(px: number, py: number): [Job, Run | undefined] | undefined {
  const job = answer.jobs[Math.floor((py - top) / rowHeight)];
  if (!job || py < top) return undefined;
  const near = job.runs.filter((run) => px >= x(run.s) - 3 && px <= Math.max(x(run.e ?? answer.now), x(run.s) + 4) + 3);
  return [job, near.find((run) => failures.includes(run.l)) ?? near[near.length - 1]];
}

function tellBin(at: number): void {
  const count = failed().get(snap(at)) ?? 0;
  const text = `${clock(at)} to ${clock(at + bin())} UTC, ${count} failed`;
  axis?.setAttribute("aria-valuenow", String(at));
  axis?.setAttribute("aria-valuetext", to > from ? `${clock(from)} to ${clock(to)} UTC is chosen; ${text}` : text);
  tellAt(text);
}

function press(event: KeyboardEvent): void {
  const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };
  let next = cursor;
  if (steps[event.key]) next = clamp(cursor + steps[event.key] * bin());
  else if (event.key === "Home") next = snap(begin);
  else if (event.key === "End") next = snap(answer.now);
  else if (event.key === "Escape" && to > from) {
    anchor = 0;
    choose(0, 0);
    tellBin(cursor);
    event.preventDefault();
    return;
  } else return;
  event.preventDefault();
  if (event.shiftKey) {
    anchor = anchor || cursor;
    cursor = next;
    choose(Math.min(anchor, cursor), Math.max(anchor, cursor));
  } else {
    anchor = 0;
    cursor = next;
    draw();
  }
  tellBin(cursor);
}

function begun(event: PointerEvent): void {
  const start = event.offsetX;
  if (event.button !== 0 || start < gutter) return;
  const target = event.currentTarget as HTMLElement;
  const base = target === axis ? gutter : 0;
  const at = (px: number) => clamp(snap(timeAt(px + base)));
  let moved = false;
  target.setPointerCapture(event.pointerId);
  const drag = (next: PointerEvent) => {
    if (!moved && Math.abs(next.offsetX - start) < 4) return;
    moved = true;
    [from, to] = [Math.min(at(start), at(next.offsetX)), Math.max(at(start), at(next.offsetX)) + bin()];
    draw();
    tellAt(`${clock(from)} to ${clock(to)} UTC`);
  };
  const over = (last: PointerEvent) => {
    target.removeEventListener("pointermove", drag);
    if (moved && last.type === "pointerup") choose(from, to);
    else if (last.type === "pointerup" && base === 0) open(last.offsetX, last.offsetY);
  };
  target.addEventListener("pointermove", drag);
  target.addEventListener("pointerup", over, { once: true });
  target.addEventListener("pointercancel", over, { once: true });
}

// open shows the job of a run that was clicked.
function open(px: number, py: number): void {
  const found = nearest(px, py);
  if (found?.[1]) location.assign("/jobs/" + encodeURIComponent(found[0].id));
}

if (data.view === "timeline" && canvas && axis && place) {
  const asked = new URLSearchParams(location.search);
  [from, to] = [parse(asked.get("since")), parse(asked.get("until"))];
  cursor = from || snap(Date.now() / 1000);
  axis.addEventListener("keydown", press);
  axis.addEventListener("focus", () => { draw(); tellBin(cursor); });
  axis.addEventListener("blur", draw);
  axis.addEventListener("pointerdown", begun);
  canvas.addEventListener("pointerdown", begun);
  canvas.addEventListener("pointermove", (event) => {
    const found = nearest(event.offsetX, event.offsetY);
    if (!found || event.buttons) return;
    const [job, run] = found;
    tellAt(run ? `${job.id}: ${meaning[run.l] ?? run.l}, began ${clock(run.s)} UTC${run.e ? `, took ${run.e - run.s} s` : ""}` : job.id);
  });
  window.addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  void look();
  window.setInterval(() => {
    if (frozen || document.hidden) return;
    const passed = Date.now() / 1000 - answer.now;
    if (!asked.has("since") && !to) { begin += passed; end += passed; }
    void look();
    readAgain();
  }, every);
}
