import { data } from "./dom";
import { frozen } from "./live";
import { span } from "./spans";
import { clockAt } from "./times";

interface Series { times: number[]; lag: number[]; waiting: number[]; rate: number[] }
declare const uPlot: any;

const charts = new Map<string, any>();

export async function drawCharts(): Promise<void> {
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
      axes: [{ ...axis, values: (_: unknown, ticks: number[]) => ticks.map(clockAt) }, { ...axis, size: 92, values: (_: unknown, ticks: number[]) => ticks.map((tick) => span(tick)) }],
      series: [{}, { stroke: color("--busy"), width: 2, fill: color("--busy-back"), points: { show: series.times.length < 3 } }],
    }, values, place));
  }
}
document.addEventListener("zone", () => charts.forEach((chart) => chart.redraw()));
if (data.view === "loads") window.setInterval(() => { if (!frozen && !document.hidden) void drawCharts(); }, 10000);
