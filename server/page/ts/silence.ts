// Silence by click: a dialog for one alert. Without it the button leads to the form of the alerts.

import { byId } from "./dom";

const dialog = byId<HTMLDialogElement>("silence");
const form = dialog?.querySelector("form");

// nextMorning is the next 08:00 of the browser's clock.
function nextMorning(): Date {
  const at = new Date();
  at.setHours(8, 0, 0, 0);
  if (at.getTime() <= Date.now()) at.setDate(at.getDate() + 1);
  return at;
}

function setMornings(): void {
  const at = nextMorning();
  const day = at.getDate() === new Date().getDate() ? "today" : "tomorrow";
  document.querySelectorAll<HTMLOptionElement>("[data-morning]").forEach((option) => {
    option.value = at.toISOString().replace(/\.\d+Z$/, "Z");
    option.textContent = `until 08:00 ${day}`;
  });
}

document.addEventListener("click", (event) => {
  const button = (event.target as HTMLElement).closest<HTMLElement>("a.silences");
  if (!button || !dialog || !form || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  setMornings();
  const fields = form.elements as HTMLFormControlsCollection;
  (fields.namedItem("rule") as HTMLInputElement).value = (button.dataset.rule ?? "").replace("ALERT_RULE_", "");
  form.querySelectorAll("[name=name]").forEach((input) => input.remove());
  for (const object of (button.dataset.objects ?? "").split("\n")) {
    const input = document.createElement("input");
    input.type = "hidden";
    input.name = "name";
    input.value = object;
    form.append(input);
  }
  const what = byId("silence-what");
  if (what) what.textContent = (button.getAttribute("aria-label") ?? "").replace("Silence ", "");
  dialog.showModal();
  (fields.namedItem("for") as HTMLSelectElement).focus();
});
form?.addEventListener("submit", () => dialog?.close());
byId("silence-leave")?.addEventListener("click", () => dialog?.close());
setMornings();
