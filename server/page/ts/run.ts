// The log of a run: lines are added as they come, and the box stays at the newest one.

import { byId } from "./dom";

// A log is kept up to a thousand lines.
const most = 1000;
const box = byId("log-box");
const follow = byId<HTMLInputElement>("log-follow");
let top = 0;

const rows = (root: ParentNode | null) => root?.querySelector<HTMLTableSectionElement>("table.log tbody") ?? null;
const sequence = (row: Element | null | undefined) => Number((row as HTMLElement | null)?.dataset.sequence ?? 0);

// logQuery says which lines are still to come.
export function logQuery(): Record<string, string> {
  const asked = new URLSearchParams(location.search);
  return { level: asked.get("level") ?? "", search: asked.get("search") ?? "", after: String(sequence(rows(byId("log"))?.lastElementChild)) };
}

// addLines adds rows that the server has made. It reports whether there is a place for them.
export function addLines(html: string[]): boolean {
  const holder = document.createElement("template");
  holder.innerHTML = html.join("");
  return addRows(Array.from(holder.content.children));
}

// addLog adds the rows of a log that was read again.
export function addLog(fresh: Element): boolean {
  const read = rows(fresh);
  return read !== null && addRows(Array.from(document.importNode(read, true).children));
}

function addRows(fresh: Element[]): boolean {
  const body = rows(byId("log"));
  if (!body) return false;
  const last = sequence(body.lastElementChild);
  body.append(...fresh.filter((row) => sequence(row) > last));
  while (body.rows.length > most) body.rows[0].remove();
  toTheEnd();
  return true;
}

export function toTheEnd(): void {
  if (!box || !follow?.checked) return;
  box.scrollTop = box.scrollHeight;
  top = box.scrollTop;
}

box?.addEventListener("scroll", () => {
  if (follow && box.scrollTop < top) follow.checked = false; // The reader wants to see earlier lines.
  top = box.scrollTop;
});
follow?.addEventListener("change", toTheEnd);
