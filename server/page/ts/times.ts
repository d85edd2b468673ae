import { frozen } from "./live";

export function span(seconds: number): string {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

function updateTimes(): void {
  if (frozen || document.hidden) return;
  for (const time of Array.from(document.querySelectorAll<HTMLTimeElement>("time"))) {
    const away = (Date.parse(time.dateTime) - Date.now()) / 1000;
    // What lies ahead, and should have been, is now.
    const ahead = time.closest(".col-next") !== null;
    const text = away >= 1 ? "in " + span(away) : away > -1 || ahead ? "now" : span(-away) + " ago";
    if (time.textContent !== text) time.textContent = text;
  }
}
window.setInterval(updateTimes, 5000);
