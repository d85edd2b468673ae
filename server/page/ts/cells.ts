// Keys move between the cells of the grid, and of a job's outcomes. A grid is one stop of the
// tab key: the cell, or the link of a row, that had the focus last.

import { byId } from "./dom";
import { grid } from "./filter";
import { paint } from "./outcomes";

const items = "#grid tbody th a, .o .c";
let stop: HTMLElement | null = null;

// row is what a cell is in: a row of the grid, or the outcomes of a job.
const row = (item: Element | null) => item?.closest<HTMLElement>("#grid tbody tr, .cells") ?? null;

// places are the link of a row and its cells, from left to right.
function places(of: HTMLElement): HTMLElement[] {
  of.querySelectorAll<HTMLElement>(".o").forEach(paint);
  return Array.from(of.querySelectorAll<HTMLElement>("th a, .o .c"));
}

function setStop(item: HTMLElement): void {
  if (stop && stop !== item) stop.tabIndex = -1;
  stop = item;
  item.tabIndex = 0;
}

// watchCells takes the rows of a grid that are new out of the order of the tab key.
export function watchCells(root: ParentNode): void {
  if (grid) root.querySelectorAll<HTMLElement>("th a").forEach((link) => { if (link !== stop && row(link)) link.tabIndex = -1; });
}

// keepStop has the tab key find the grid, whatever rows are shown.
export function keepStop(): void {
  if (stop?.isConnected && !row(stop)?.hidden) return;
  if (!grid) document.querySelectorAll<HTMLElement>(".cells .o").forEach(paint);
  const first = grid
    ? grid.querySelector<HTMLElement>("tbody tr:not([hidden]) th a")
    : Array.from(document.querySelectorAll<HTMLElement>(".cells .o .c")).pop();
  if (first) setStop(first);
}

// A row that is a link and cells is left by its place from the right: the latest run of one
// row is above that of the next.
function upOrDown(from: HTMLElement, by: number): HTMLElement | undefined {
  const rows = Array.from(document.querySelectorAll<HTMLElement>("#grid tbody tr:not([hidden])"));
  const here = row(from) as HTMLElement;
  const next = rows[rows.indexOf(here) + by];
  if (!next) return undefined;
  const all = places(next);
  if (from.matches("th a")) return all[0];
  const fromRight = places(here).reverse().indexOf(from);
  return all[Math.max(0, all.length - 1 - fromRight)];
}

function move(from: HTMLElement, key: string): HTMLElement | undefined {
  const all = places(row(from) as HTMLElement);
  const at = all.indexOf(from);
  switch (key) {
    case "ArrowLeft": return all[at - 1];
    case "ArrowRight": return all[at + 1];
    case "Home": return all[0];
    case "End": return all[all.length - 1];
    case "ArrowUp": return upOrDown(from, -1);
    case "ArrowDown": return upOrDown(from, 1);
  }
  return undefined;
}

document.addEventListener("keydown", (event) => {
  const from = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || !from.matches?.(items)) return;
  if (!/^(Arrow|Home$|End$)/.test(event.key)) return;
  event.preventDefault();
  const to = move(from, event.key);
  to?.focus();
  to?.scrollIntoView({ block: "nearest" });
});

document.addEventListener("focusin", (event) => {
  const item = event.target as HTMLElement;
  if (item.matches(items)) setStop(item);
});

// keepCell changes rows, and leaves the focus at the place where it was.
export function keepCell(change: () => void): void {
  const active = document.activeElement as HTMLElement | null;
  const here = active?.matches(items) ? row(active) : null;
  const id = here?.id ?? "";
  const link = active?.matches("th a");
  const fromRight = here && active ? places(here).reverse().indexOf(active) : -1;
  change();
  if (here && !active?.isConnected) {
    const now = id ? byId(id) : document.querySelector<HTMLElement>("main .cells:has(.o)");
    const all = now ? places(now) : [];
    const to = link ? all[0] : all[Math.max(0, all.length - 1 - fromRight)];
    to?.focus({ preventScroll: true });
  }
  keepStop();
}
