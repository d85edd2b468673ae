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
  const idx = Math.min(last, Math.max(0, to));
  chart.setCursor({ left: chart.valToPos(chart.data[0][idx], "x"), top: chart.over.clientHeight / 2 });
}

function make(place: HTMLElement, values: unknown): any {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const axis = { stroke: color("--dim"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
  const least = "seconds" in place.dataset ? 10 : 1;
  const series: unknown[] = [{}, { stroke: color("--busy"), width: 2, fill: color("--busy-back") }];
  if ("limit" in place.dataset) series.push({ stroke: color("--dim"), width: 1, dash: [4, 4] });
  const long = section()?.dataset.span !== "hour";
  const chart = new uPlot({
    width: place.clientWidth, height: 170, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } },
    scales: { y: { range: (_: unknown, __: number, most: number) => [0, Math.max(least, (most ?? 0) * 1.1)] } },
    axes: [
      { ...axis, values: (_: unknown, ticks: number[]) => ticks.map((tick) => long ? stampAt(tick).slice(5, 16) : clockAt(tick)), space: long ? 90 : 60 },
      { ...axis, size: 92, values: (_: unknown, ticks: number[]) => ticks.map((tick) => text(place, tick)) },
    ],
    series, hooks: { setCursor: [(self: any) => read(place, self)] },
  }, values, place);
  place.addEventListener("keydown", (event) => onKey(place, event));
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
    if (known) known.setData(values);
    else charts.set(place, make(place, values));
  }
}
document.addEventListener("zone", () => charts.forEach((chart, place) => { chart.redraw(); read(place, chart); }));
if (section()) window.setInterval(() => { if (!frozen && !document.hidden) void drawCharts(); }, 10000);
