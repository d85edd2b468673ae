// A card tells of the outcome under the pointer, or with the focus. The server makes it, and
// it is kept until the row changes.

import { byId } from "./dom";
import { meaning } from "./outcomes";

const card = document.createElement("div");
card.id = "card";
card.className = "card";
card.hidden = true;
card.setAttribute("role", "group");
card.ariaLabel = "What is known of it";
card.ariaLive = "polite";

// It stands after what has the cells: the tab key leads into it.
const place = byId("grid")?.closest(".scroll") ?? byId("job-now");
place?.after(card);

const kept = new WeakMap<Element, Map<string, string>>();
let of: HTMLElement | null = null;
let timer = 0;
let reading: AbortController | null = null;
// What someone has closed stays closed until the focus goes elsewhere, though its row changes.
let closed = "";

const cellAt = (at: EventTarget | null) => (at as Element | null)?.closest?.<HTMLElement>(".o .c") ?? null;

function later(ms: number, what: () => void): void {
  window.clearTimeout(timer);
  timer = window.setTimeout(what, ms);
}

function hide(): void {
  window.clearTimeout(timer);
  reading?.abort();
  of?.removeAttribute("aria-describedby");
  of = null;
  card.hidden = true;
}

// move puts the card below the cell, or above it where there is no room.
function move(): void {
  if (!of) return;
  const cell = of.getBoundingClientRect();
  const width = document.documentElement.clientWidth;
  card.style.left = Math.max(4, Math.min(cell.left, width - card.offsetWidth - 4)) + "px";
  const below = cell.bottom + 4;
  const fits = below + card.offsetHeight <= window.innerHeight || cell.top - 4 - card.offsetHeight < 0;
  card.style.top = (fits ? below : cell.top - 4 - card.offsetHeight) + "px";
}

function fill(html: string): void {
  const holder = document.createElement("template");
  holder.innerHTML = html; // The server's, which has escaped what is in it.
  card.replaceChildren(holder.content);
  move();
}

async function show(cell: HTMLElement): Promise<void> {
  window.clearTimeout(timer);
  if (of === cell) return;
  hide();
  const lane = cell.parentElement as HTMLElement;
  const path = cell.dataset.card ?? "";
  of = cell;
  card.textContent = (meaning[cell.textContent ?? ""] ?? "") + " …";
  card.hidden = false;
  cell.setAttribute("aria-describedby", "card");
  move();
  const cards = kept.get(lane) ?? new Map<string, string>();
  kept.set(lane, cards);
  const known = cards.get(path);
  if (known !== undefined) {
    fill(known);
    return;
  }
  const mine = reading = new AbortController();
  try {
    const answer = await fetch(path, { signal: mine.signal });
    const html = await answer.text();
    if (answer.ok) cards.set(path, html);
    if (of === cell) fill(html);
  } catch {
    if (of === cell && !mine.signal.aborted) card.textContent = "The server does not answer.";
  }
}

// touched is the cell that had its card already when a finger came down: a finger opens that
// first, then the run. By the time of the click the focus has opened it.
let touched: HTMLElement | null = null;

const focused = () => cellAt(document.activeElement) ?? (card.contains(document.activeElement) ? of : null);

document.addEventListener("pointerover", (event) => {
  if (event.pointerType === "touch") return;
  const cell = cellAt(event.target);
  if (cell) later(120, () => void show(cell));
  else if (card.contains(event.target as Node)) window.clearTimeout(timer);
  else if (of) {
    later(250, () => {
      const other = focused();
      if (other) void show(other);
      else hide();
    });
  } else window.clearTimeout(timer);
});
document.addEventListener("focusin", (event) => {
  const cell = cellAt(event.target);
  if (!cell) {
    if (of && !card.contains(event.target as Node)) hide();
  } else if (cell.dataset.card !== closed) {
    closed = "";
    void show(cell);
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || card.hidden || !of) return;
  const cell = of;
  const inside = card.contains(document.activeElement);
  closed = cell.dataset.card ?? "";
  hide();
  if (inside) cell.focus();
});
document.addEventListener("pointerdown", (event) => {
  const cell = cellAt(event.target);
  touched = of === cell && !card.hidden ? cell : null;
});
document.addEventListener("click", (event) => {
  const cell = cellAt(event.target);
  if (!cell || (event as PointerEvent).pointerType !== "touch" || cell === touched) return;
  event.preventDefault();
  void show(cell);
});
window.addEventListener("scroll", move, { passive: true, capture: true });

// leaveCard ends the card of a row that is no more.
export function leaveCard(): void {
  if (of && !of.isConnected) hide();
}
