// The filter of the grid: the address has it, and nothing but people changes it.

import { byId, home } from "./dom";

const names = ["q", "status", "type", "mode", "owner", "provider"];
export const grid = byId<HTMLTableElement>("grid");
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

function holdsQueue(row: HTMLTableRowElement, want: Record<string, string>): boolean {
  return row.id.slice(2).toLowerCase().includes(want.q.toLowerCase()) && !(want.status + want.type + want.owner + want.provider) &&
    ["", "queued"].includes(want.mode);
}

export function applyFilter(): void {
  const jobs = grid?.querySelector<HTMLTableSectionElement>("tbody.jobs");
  if (!grid || !jobs) return;
  const want = chosen();
  const counts: Record<string, number> = {};
  let shown = 0;
  for (const row of Array.from(grid.tBodies[0].rows)) row.hidden = !holdsQueue(row, want);
  for (const row of Array.from(jobs.rows)) {
    const fits = holds(row, want);
    if (row.hidden === fits) row.hidden = !fits;
    if (fits) shown++;
    const status = row.className.replace(/^s-(\S+).*/, "$1").replace(/-/g, " ");
    counts[status] = (counts[status] ?? 0) + 1;
  }
  const all = jobs.rows.length;
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
  updateLinks();
  for (const name of names) {
    document.querySelectorAll<HTMLInputElement | HTMLSelectElement>(`#bulk [name=${name}], #filter [name=${name}]`).forEach((input) => {
      if (input !== document.activeElement && input.value !== want[name]) input.value = want[name];
    });
  }
}

// updateLinks has the links to this page say all that the address says.
export function updateLinks(): void {
  document.querySelectorAll<HTMLAnchorElement>("[data-set]").forEach((link) => {
    const [name, value] = (link.dataset.set ?? "").split("=");
    link.href = address({ [name]: value });
  });
}

export function address(change: Record<string, string>): string {
  const values = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(change)) {
    if (value || name === "columns") values.set(name, value);
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
} else if (filter) {
  filter.addEventListener("change", () => filter.requestSubmit());
}
