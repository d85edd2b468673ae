import { byId } from "./dom";
import { frozen } from "./live";
import { span } from "./spans";
import { clockAt, stampAt } from "./times";

// Samples are values at equal distances: null where there is none.
interface Samples { start: number; step: number; count: number; series: Record<string, [Values, Values]> }
type Values = (number | null)[];
declare const uPlot: any;

const charts = new Map<HTMLElement, any>();
const shown = new Set<HTMLElement>();
let watched: IntersectionObserver | undefined;
const height = 170;

function section(): HTMLElement | null { return document.querySelector("#charts-of"); }

// text is a value for people.
function text(place: HTMLElement, value: number | null | undefined): string {
  if (value === null || value === undefined) return "no sample";
  return "seconds" in place.dataset ? span(value) : String(value);
}

function read(place: HTMLElement, chart: any): void {
  const at = chart.cursor.idx;
  const output = place.parentElement?.querySelector<HTMLElement>(".read");
  if (!output) return;
  if (at === null || at === undefined) {
    output.textContent = "";
    return;
  }
  const limit = "limit" in place.dataset ? ` of ${text(place, chart.data[2][at])}` : "";
  output.textContent = `${stampAt(chart.data[0][at])}: ${text(place, chart.data[1][at])}${limit}`;
}

// Keys move the cursor by a sample, or by a tenth of all.
function onKey(place: HTMLElement, event: KeyboardEvent): void {
  const chart = charts.get(place);
  if (!chart) return;
  const last = chart.data[0].length - 1;
  const at = chart.cursor.idx ?? last;
  const tenth = Math.max(1, Math.round(last / 10));
  const to = ({ ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at - tenth, PageDown: at + tenth, Home: 0, End: last } as Record<string, number>)[event.key];
  if (to === undefined) return;
  event.preventDefault();
  chart.setCursor(cursorAt(chart, Math.min(last, Math.max(0, to))));
}

// cursorAt is the place of a sample. The scale of a chart whose data has just changed is the
// former one, so it does not count.
function cursorAt(chart: any, idx: number): { left: number; top: number } {
  return { left: idx / Math.max(1, chart.data[0].length - 1) * chart.over.clientWidth, top: chart.over.clientHeight / 2 };
}

// update gives a chart new values. The cursor of the pointer stays where the pointer is; that
// of keys stays at its time, or at the latest one.
function update(place: HTMLElement, chart: any, values: any[]): void {
  const [times, idx] = [chart.data[0], chart.cursor.idx];
  const kept = place === document.activeElement && idx < times.length - 1 ? values[0].indexOf(times[idx]) : -1;
  chart.setData(values);
  if (kept >= 0) chart.setCursor(cursorAt(chart, kept), false);
}

function make(place: HTMLElement, values: unknown): any {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => () => style.getPropertyValue(name).trim(); // That of now: people may change to the dark.
  const axis = { stroke: color("--dim"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
  const least = "seconds" in place.dataset ? 10 : 1;
  const series: unknown[] = [{}, { stroke: color("--busy"), width: 2, fill: color("--busy-back") }];
  if ("limit" in place.dataset) series.push({ stroke: color("--dim"), width: 1, dash: [4, 4] });
  const long = section()?.dataset.span !== "hour";
  const chart = new uPlot({
    width: place.clientWidth, height, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } },
    scales: { y: { range: (_: unknown, __: number, most: number) => [0, Math.max(least, (most ?? 0) * 1.1)] } },
    axes: [
      { ...axis, size: 34, values: (_: unknown, ticks: number[]) => ticks.map((tick) => long ? stampAt(tick).slice(5, 16) : clockAt(tick)), space: long ? 90 : 60 },
      { ...axis, size: "seconds" in place.dataset ? 92 : 60, values: (_: unknown, ticks: number[]) => ticks.map((tick) => text(place, tick)) },
    ],
    series, hooks: { setCursor: [(self: any) => read(place, self)] },
  }, values, place);
  place.addEventListener("keydown", (event) => onKey(place, event));
  sized.observe(place);
  return chart;
}

// Charts are drawn once they are on the screen.
export async function drawCharts(): Promise<void> {
  const of = section();
  if (!of || typeof uPlot === "undefined") return;
  const places = Array.from(of.querySelectorAll<HTMLElement>(".chart"));
  watched ??= new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const place = entry.target as HTMLElement;
      if (entry.isIntersecting) shown.add(place);
      else shown.delete(place);
    }
    if (entries.some((entry) => entry.isIntersecting && !charts.has(entry.target as HTMLElement))) void drawCharts();
  });
  for (const place of places) watched.observe(place);
  const wanted = places.filter((place) => shown.has(place));
  if (!wanted.length) return;
  const names = new Set(wanted.map((place) => place.dataset.name ?? ""));
  const query = new URLSearchParams([["of", of.dataset.of ?? ""], ["span", of.dataset.span ?? ""], ...Array.from(names, (name) => ["name", name])]);
  const answer = await fetch(`/samples?${query}`);
  if (!answer.ok) return;
  const samples: Samples = await answer.json();
  const times = Array.from({ length: samples.count }, (_, i) => samples.start + i * samples.step);
  for (const place of wanted) {
    const series = samples.series[place.dataset.name ?? ""];
    if (!series) continue;
    const values = [times, series[Number(place.dataset.value)]];
    if ("limit" in place.dataset) values.push(series[1]);
    const known = charts.get(place);
    if (known) update(place, known, values);
    else charts.set(place, make(place, values));
  }
}

// takeCharts adds the charts of what is new, and takes away those of what is gone.
export function takeCharts(fresh: Document): void {
  const of = section();
  const list = byId("charts");
  if (!of || !list) return;
  for (const figure of Array.from(list.children)) {
    if (fresh.getElementById(figure.id)) continue;
    const place = figure.querySelector<HTMLElement>(".chart")!;
    watched?.unobserve(place);
    sized.unobserve(place);
    shown.delete(place);
    charts.get(place)?.destroy();
    charts.delete(place);
    figure.remove();
  }
  Array.from(fresh.querySelectorAll("#charts > figure")).forEach((figure, at) => {
    if (!byId(figure.id)) list.insertBefore(document.importNode(figure, true), list.children[at] ?? null);
  });
  of.hidden = !list.children.length;
}

const sized = new ResizeObserver((entries) => entries.forEach(({ target }) => {
  const chart = charts.get(target as HTMLElement);
  if (chart && target.clientWidth && chart.width !== target.clientWidth) chart.setSize({ width: target.clientWidth, height });
}));
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((chart) => chart.redraw()));
document.addEventListener("zone", () => charts.forEach((chart, place) => {
  chart.redraw(true, true); // With the labels of its axes.
  read(place, chart);
}));
if (section()) window.setInterval(() => { if (!frozen && !document.hidden) void drawCharts(); }, 10000);
