import { data } from "./dom";

// A letter with its meaning, as the server has them.
const letters: { Letter: string; Text: string }[] = JSON.parse(data.letters ?? "[]");
export const meaning = Object.fromEntries(letters.map((one) => [one.Letter, one.Text]));

// The letter of a start that has no run.
const noRun = "M";

// Fingers need wide cells: a row of the grid has the latest ones that fit.
const wide = matchMedia("(pointer: coarse), (max-width: 700px)");
const wideCell = 25;

// Cells are made for what is on the screen alone: a thousand rows have thirty thousand.
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) {
      seen.unobserve(entry.target);
      paint(entry.target as HTMLElement);
    }
  }
}, { rootMargin: "300px" });

function jobOf(lane: HTMLElement): string {
  return lane.dataset.job ?? lane.closest("tr")?.id.slice(2) ?? "";
}

// paint makes a link of each outcome. Runs are counted back from the latest; of starts
// without a run those just before the next run are.
export function paint(lane: HTMLElement): void {
  const text = lane.textContent ?? "";
  if (lane.firstElementChild || !text) return;
  const durations = lane.dataset.d ?? "";
  const job = "/jobs/" + encodeURIComponent(jobOf(lane));
  const fits = wide.matches && lane.tagName === "DIV" ? Math.max(1, Math.floor(lane.clientWidth / wideCell)) : text.length;
  const cells: HTMLAnchorElement[] = [];
  let back = 0;
  let missed = 0;
  for (let at = text.length - 1; at >= 0 && cells.length < fits; at--) {
    const letter = text[at];
    const cell = document.createElement("a");
    const word = meaning[letter] ?? letter;
    cell.className = `c ${letter} h${durations[at] ?? 0}`;
    cell.textContent = letter;
    cell.tabIndex = -1;
    if (letter === noRun) {
      cell.href = job + "#starts";
      cell.dataset.card = `${job}/outcomes/${back}/card?missed=${missed}`;
      cell.ariaLabel = word;
      missed++;
    } else {
      cell.href = `${job}/outcomes/${back}`;
      cell.dataset.card = `${job}/outcomes/${back}/card`;
      cell.ariaLabel = back ? `${word}, ${back} before the latest` : `${word}, the latest`;
      missed = 0;
      back++;
    }
    cells.push(cell);
  }
  lane.replaceChildren(...cells.reverse());
  const picture = lane.closest("[role=img]");
  picture?.setAttribute("role", "group"); // There are links in it now.
}

export function watchOutcomes(root: ParentNode): void {
  root.querySelectorAll<HTMLElement>(".o").forEach((lane) => seen.observe(lane));
}
