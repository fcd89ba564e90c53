/* Formatting of numbers, shares, times and texts. Missing values are shown as a dash. */

export const NONE = "–";

const GROUPED = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** A count with separators: `12,345`. */
export function count(value: number | null | undefined): string {
  return isNumber(value) ? GROUPED.format(value) : NONE;
}

/** A number with some significant digits: `0.0123`, `1.23e-7`, `12,345`. */
export function number(value: number | null | undefined, digits = 3): string {
  if (!isNumber(value)) return NONE;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 10 ** digits) return Number.isInteger(value) || size >= 1e5 ? GROUPED.format(value) : value.toFixed(1);
  if (size < 1e-4) return value.toExponential(digits - 1);
  return String(Number(value.toPrecision(digits)));
}

/** A step, or a position between steps: `3`, `2.5`. */
export function stepNumber(value: number): string {
  return String(Math.round(value * 100) / 100);
}

/** A share as a percentage: `12.3%`. */
export function percent(value: number | null | undefined): string {
  if (!isNumber(value)) return NONE;
  const hundred = value * 100;
  return `${Math.abs(hundred) >= 99.95 || hundred === 0 ? hundred.toFixed(0) : hundred.toFixed(1)}%`;
}

/** A difference of two shares in percentage points: `11.3 points`, `1 point`. */
export function points(value: number): string {
  const hundred = Number((value * 100).toFixed(1));
  return `${hundred} ${Math.abs(hundred) === 1 ? "point" : "points"}`;
}

/** The sign of a difference of two shares, after the rounding of `points`: 1, -1 or 0. */
export function way(value: number): number {
  return points(value) === points(0) ? 0 : Math.sign(value);
}

/** A difference with its sign: `+0.12`, `−0.3`; without a sign if its size is written as zero. */
export function signed(value: number | null | undefined, form: (value: number) => string = number): string {
  if (!isNumber(value)) return NONE;
  const size = form(Math.abs(value));
  return size === form(0) ? size : value < 0 ? `−${size}` : `+${size}`;
}

/** A duration in a suitable unit: `340 ms`, `12.3 s`, `4 min 10 s`, `3 h 20 min`. */
export function seconds(value: number | null | undefined): string {
  if (!isNumber(value)) return NONE;
  if (value < 0.9995) return `${number(value * 1000)} ms`;
  if (value < 99.95) return `${number(value)} s`;
  const whole = Math.round(value);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** A time in the local time zone: `22 Nov, 14:05`. */
export function moment(time: string | null | undefined): string {
  const date = new Date(time ?? "");
  if (Number.isNaN(date.getTime())) return NONE;
  const year = date.getFullYear() === new Date().getFullYear() ? "" : ` ${date.getFullYear()}`;
  const day = `${date.getDate()} ${date.toLocaleString("en", { month: "short" })}${year}`;
  return `${day}, ${String(date.getHours()).padStart(2, "0")}:${String(date.getMinutes()).padStart(2, "0")}`;
}

/** A relative time: `just now`, `5 min ago`, `3 h ago`, `2 days ago`. */
export function ago(time: string | null | undefined, now = Date.now()): string {
  const date = new Date(time ?? "").getTime();
  if (Number.isNaN(date)) return NONE;
  const passed = Math.max(0, (now - date) / 1000);
  if (passed < 60) return "just now";
  if (passed < 3600) return `${Math.floor(passed / 60)} min ago`;
  if (passed < 86400) return `${Math.floor(passed / 3600)} h ago`;
  const days = Math.floor(passed / 86400);
  return days === 1 ? "1 day ago" : `${days} days ago`;
}

/** `1 episode`, `2 episodes`. */
export function many(value: number, word: string, plural = `${word}s`): string {
  return `${count(value)} ${value === 1 ? word : plural}`;
}

/** Cut a text to a maximum length, with an ellipsis. */
export function short(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/** Any value of a configuration as text. */
export function plain(value: unknown): string {
  if (value === null || value === undefined) return NONE;
  if (typeof value === "string") return value;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** Make control characters visible: programs may print any, and some change the direction of text. */
export function visible(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(CONTROLS, (letter) => {
    const code = letter.charCodeAt(0);
    return code < 32 ? String.fromCharCode(0x2400 + code) : code === 127 ? "␡" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

export function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}
