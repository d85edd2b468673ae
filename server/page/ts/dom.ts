// What all parts of the script use.

export const data = document.body.dataset;
export const home = data.view === "home";
export const byId = <E extends HTMLElement>(id: string) => document.getElementById(id) as E | null;

export function tell(text: string): void {
  const state = byId("link-state");
  if (state && state.textContent !== text) state.textContent = text;
}

export function say(text: string): void {
  const said = byId("said");
  if (said) said.textContent = text;
}

export function element(tag: string, text: string): HTMLElement {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}
