import { data } from "./dom";

// A letter with its meaning, as the server has them.
const letters: { Letter: string; Text: string }[] = JSON.parse(data.letters ?? "[]");
const meaning = Object.fromEntries(letters.map((one) => [one.Letter, one.Text]));

// Cells are made for what is on the screen alone: a thousand rows have thirty thousand.
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) {
      seen.unobserve(entry.target);
      paint(entry.target as HTMLElement);
    }
  }
}, { rootMargin: "300px" });

function paint(cell: HTMLElement): void {
  const letters = cell.textContent ?? "";
  if (cell.firstElementChild || !letters) return;
  const cells = document.createDocumentFragment();
  for (const letter of letters) {
    const one = document.createElement("span");
    one.className = "c " + letter;
    one.textContent = letter;
    one.title = meaning[letter] ?? letter;
    cells.append(one);
  }
  cell.replaceChildren(cells);
}

export function watchOutcomes(root: ParentNode): void {
  root.querySelectorAll<HTMLElement>(".o").forEach((cell) => seen.observe(cell));
}

// A click on an outcome leads to its run. Starts without a run do not count.
document.addEventListener("click", (event) => {
  const cell = (event.target as HTMLElement).closest<HTMLElement>(".o .c");
  if (!cell) return;
  const outcomes = cell.parentElement as HTMLElement;
  const id = outcomes.dataset.job ?? outcomes.closest("tr")?.id.slice(2);
  if (!id) return;
  if (cell.textContent === "M") {
    location.assign("/jobs/" + encodeURIComponent(id) + "#starts");
    return;
  }
  let back = 0;
  for (let next = cell.nextElementSibling; next; next = next.nextElementSibling) if (next.textContent !== "M") back++;
  location.assign("/jobs/" + encodeURIComponent(id) + "/outcomes/" + back);
});
