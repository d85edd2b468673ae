// Durations and times as people write them, as package job/wording does: one table tests both.

function two(seconds: number, large: number, largeName: string, small: number, smallName: string): string {
  const text = `${Math.floor(seconds / large)} ${largeName}`;
  const rest = Math.floor((seconds % large) / small);
  return rest > 0 ? `${text} ${rest} ${smallName}` : text;
}

// span is a duration in its two largest units: 2 h 5 min. It is never rounded up.
export function span(seconds: number): string {
  const ms = Math.floor(Math.round(seconds * 1e6) / 1e3); // Fractions are not exact.
  if (ms < 0 || seconds <= 0) return "0 s";
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60000) return `${Math.floor(ms / 100) / 10} s`;
  const whole = Math.floor(ms / 1000);
  if (whole < 3600) return two(whole, 60, "min", 1, "s");
  if (whole < 86400) return two(whole, 3600, "h", 60, "min");
  return two(whole, 86400, "d", 3600, "h");
}

const coarse = (seconds: number) => seconds < 60 ? Math.floor(seconds) : Math.floor(seconds / 60) * 60;

// away says how far a time is from now: in 5 min, now, 2 h 5 min ago.
export function away(seconds: number): string {
  if (seconds >= 1) return "in " + span(coarse(seconds));
  if (seconds > -1) return "now";
  return span(coarse(-seconds)) + " ago";
}

const padded = (n: number) => String(n).padStart(2, "0");

// stamp is a time to the second with its zone: 2026-05-01 06:00:00 UTC.
export function stamp(at: Date, local: boolean): string {
  return `${dayOf(at, local)} ${clock(at, local)} ${zone(at, local)}`;
}

export function dayOf(at: Date, local: boolean): string {
  return local ? `${at.getFullYear()}-${padded(at.getMonth() + 1)}-${padded(at.getDate())}`
    : at.toISOString().slice(0, 10);
}

// clock is a time of a day, 24 hours.
export function clock(at: Date, local: boolean): string {
  return local ? [at.getHours(), at.getMinutes(), at.getSeconds()].map(padded).join(":") : at.toISOString().slice(11, 19);
}

// zone is the short name of a time zone: UTC, GMT+1.
export function zone(at: Date, local: boolean): string {
  if (!local) return "UTC";
  const parts = new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts(at);
  return parts.find((part) => part.type === "timeZoneName")?.value ?? "local";
}
