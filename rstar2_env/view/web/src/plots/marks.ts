/* Signs of events at the lower edge of a plot. */
import type uPlot from "uplot";
import type { Look } from "./palette";

export interface PlacedMark {
  /** Position on the x axis. */
  x: number;
  events: string[];
  /** With several runs: their name, and the index of their colour. */
  label?: string;
  color?: number;
}

/** The sign of each kind of event; other kinds are not drawn. */
export const SIGNS: Record<string, string> = { evaluation: "▲", checkpoint: "■", note: "◆", resumed: "▶" };

/** Size of a sign, and the least distance between two of a kind, in pixels. */
const SIZE = 9;
const APART = 7;

/** Draw the signs, those of one position above each other, and a vertical line where something changed the run. */
export function drawMarks(plot: uPlot, marks: PlacedMark[], { line: colorOf, text }: Pick<Look, "line" | "text">): void {
  const { ctx: pen, bbox } = plot;
  const ratio = devicePixelRatio || 1;
  const last = new Map<string, number>();
  const rows = new Map<number, number>();
  pen.save();
  pen.font = `${SIZE * ratio}px system-ui, sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";
  for (const { x, events, label, color } of marks) {
    pen.fillStyle = pen.strokeStyle = color === undefined ? text : colorOf(color);
    const left = plot.valToPos(x, "x", true);
    if (!(left >= bbox.left - 1 && left <= bbox.left + bbox.width + 1)) continue;
    for (const event of events) {
      const sign = SIGNS[event];
      const kind = `${label ?? ""} ${event}`;
      const row = rows.get(x) ?? 0;
      if (sign === undefined || left - (last.get(kind) ?? -Infinity) < APART * ratio) continue;
      last.set(kind, left);
      if (event === "note" || event === "resumed") line(pen, left, bbox, ratio);
      pen.fillText(sign, left, bbox.top + bbox.height - (2 + row * SIZE) * ratio);
      rows.set(x, row + 1);
    }
  }
  pen.restore();
}

function line(pen: CanvasRenderingContext2D, left: number, { top, height }: uPlot.BBox, ratio: number): void {
  pen.save();
  pen.globalAlpha = 0.5;
  pen.lineWidth = ratio;
  pen.setLineDash([3 * ratio, 3 * ratio]);
  pen.beginPath();
  pen.moveTo(left, top);
  pen.lineTo(left, top + height);
  pen.stroke();
  pen.restore();
}

/** Words for the events at a position; empty without any. */
export function eventsAt(marks: PlacedMark[], x: number): string {
  const found = new Map<string, Set<string>>();
  for (const { x: at, label = "", events } of marks) {
    if (at === x) found.set(label, new Set([...(found.get(label) ?? []), ...events]));
  }
  return [...found].map(([label, events]) => `${label && `${label}: `}${[...events].join(", ")}`).join("; ");
}
