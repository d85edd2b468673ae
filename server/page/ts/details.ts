// Details that people have opened stay open while the part around them changes, and what is fetched
// when they are opened is fetched once.

// keepDetails changes a part, and leaves its details as they were.
export function keepDetails(part: HTMLElement, change: () => void): void {
  const open = Array.from(part.querySelectorAll<HTMLDetailsElement>("details[data-keep][open]"));
  const focused = document.activeElement?.closest<HTMLElement>("summary")?.parentElement?.dataset.keep;
  const lines = new Map(open.map((one) => [one.dataset.keep ?? "", one.querySelector(":scope > .tail-lines")]));
  const inside = focused !== undefined && part.contains(document.activeElement);
  change();
  for (const one of Array.from(part.querySelectorAll<HTMLDetailsElement>("details[data-keep]"))) {
    const key = one.dataset.keep ?? "";
    if (lines.has(key)) {
      const known = lines.get(key);
      if (known) one.append(known);
      one.open = true;
    }
    if (inside && key === focused) one.querySelector("summary")?.focus();
  }
}

// The event does not bubble.
document.addEventListener("toggle", (event) => {
  const details = event.target as HTMLDetailsElement;
  if (details.open && details.dataset.tail && !details.querySelector(":scope > .tail-lines")) void fetchTail(details);
}, true);

async function fetchTail(details: HTMLDetailsElement): Promise<void> {
  const waits = document.createElement("p");
  waits.className = "tail-lines";
  waits.textContent = "…";
  details.append(waits);
  try {
    const answer = await fetch(details.dataset.tail ?? "", { headers: { Accept: "text/html" } });
    const lines = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".tail-lines");
    if (!answer.ok || !lines) throw new Error("no lines");
    waits.replaceWith(document.importNode(lines, true));
  } catch {
    waits.textContent = "The lines cannot be read.";
  }
}
