import { byId } from "./dom";

function step(by: number): void {
  const rows = Array.from(document.querySelectorAll<HTMLTableRowElement>("main tbody tr:not([hidden])")).filter((row) => row.querySelector("a"));
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.hasAttribute("aria-current"));
  const row = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + by))];
  rows.forEach((other) => other.removeAttribute("aria-current"));
  row.setAttribute("aria-current", "true");
  row.querySelector<HTMLElement>("th a, a")?.focus();
  row.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  const at = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (at.matches("input:not([type=checkbox]), select, textarea")) {
    if (event.key === "Escape") at.blur();
    return;
  }
  switch (event.key) {
    case "j": step(1); break;
    case "k": step(-1); break;
    case "f": byId("freeze")?.click(); break;
    case "?": byId<HTMLDialogElement>("keys")?.showModal(); break;
    case "/":
      if (byId("q")) byId("q")?.focus();
      else location.assign("/?search");
      break;
    default: return;
  }
  event.preventDefault();
});
byId("help")?.addEventListener("click", () => byId<HTMLDialogElement>("keys")?.showModal());
if (location.search === "?search") byId("q")?.focus();
