// Times: how far they are away, and the zone that people choose.

import { byId, say } from "./dom";
import { frozen } from "./live";
import { away, clock, dayOf, stamp, zone } from "./spans";

let local = localStorage.getItem("zone") === "local";

// clockNow is the time of the day as the page writes it.
export const clockNow = () => clock(new Date(), local);

// clockAt is the time of the day of a moment, without seconds.
export const clockAt = (seconds: number) => clock(new Date(seconds * 1000), local).slice(0, 5);

// stampAt is a moment to the second.
export const stampAt = (seconds: number) => stamp(new Date(seconds * 1000), local);

function textOf(time: HTMLTimeElement, at: Date): string {
  if (time.classList.contains("ms")) return `${dayOf(at, local)} ${clock(at, local)}.${String(at.getMilliseconds()).padStart(3, "0")}`;
  return stamp(at, local);
}

function showTimes(within: ParentNode, zoneChanged: boolean): void {
  for (const time of Array.from(within.querySelectorAll<HTMLTimeElement>("time"))) {
    const at = new Date(time.dateTime);
    let text = time.textContent;
    if (time.classList.contains("stamp")) {
      if (zoneChanged) text = textOf(time, at);
    } else {
      if (zoneChanged || !time.title) time.title = stamp(at, local);
      // What lies ahead, and should have been, is now.
      const ahead = time.closest(".col-next") !== null;
      const seconds = (at.getTime() - Date.now()) / 1000;
      if (!frozen) text = away(ahead ? Math.max(seconds, 0) : seconds);
    }
    if (time.textContent !== text) time.textContent = text;
  }
}
window.setInterval(() => { if (!frozen && !document.hidden) showTimes(document, false); }, 5000);

// What comes from the server has times in UTC.
new MutationObserver((changes) => {
  if (!local) return;
  for (const change of changes) {
    for (const node of Array.from(change.addedNodes)) if (node instanceof Element) showTimes(node, true);
  }
}).observe(byId("main")!, { childList: true, subtree: true });

function showZone(): void {
  const button = byId("zone");
  const name = zone(new Date(), local);
  if (button) {
    button.textContent = name;
    button.ariaLabel = `Times are in ${name}, press for ${local ? "UTC" : "the zone of this browser"}`;
  }
  showTimes(document, true);
}

byId("zone")?.addEventListener("click", () => {
  local = !local;
  localStorage.setItem("zone", local ? "local" : "utc");
  showZone();
  document.dispatchEvent(new Event("zone"));
  say(`Times are in ${zone(new Date(), local)}`);
});
showZone();
