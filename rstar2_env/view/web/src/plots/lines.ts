/* Computation of plotted lines from series: smoothing, bands over seeds, a common axis. No drawing. */
import { isNumber } from "../format";
import type { Numbers } from "../data/types";

export interface Points {
  x: number[];
  y: Numbers;
}

export interface Line extends Points {
  id: string;
  label: string;
  /** Index of the colour. */
  color: number;
  /** Index of the dash pattern. */
  dash: number;
  band?: { low: Numbers; high: Numbers };
  /** Values before smoothing, drawn faintly. */
  raw?: Numbers;
}

export type Spread = "range" | "deviation" | "each";

/** Bias-corrected exponential moving average; the weight of the past is in [0, 1). Gaps are preserved. */
export function smooth(values: Numbers, weight: number): Numbers {
  if (weight <= 0) return values;
  let sum = 0;
  let mass = 0;
  return values.map((value) => {
    if (!isNumber(value)) return null;
    sum = weight * sum + (1 - weight) * value;
    mass = weight * mass + (1 - weight);
    return sum / mass;
  });
}

/** Mean over runs at every step of any run, with a band: the range, or one standard deviation to each side. */
export function spread(runs: Points[], how: "range" | "deviation"): Points & { low: Numbers; high: Numbers } {
  const { x, columns } = aligned(runs);
  const y: Numbers = [];
  const low: Numbers = [];
  const high: Numbers = [];
  for (let at = 0; at < x.length; at++) {
    const values = columns.map((column) => column[at]).filter(isNumber);
    if (!values.length) {
      y.push(null);
      low.push(null);
      high.push(null);
      continue;
    }
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const variance =
      values.length > 1 ? values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1) : 0;
    const half = Math.sqrt(variance);
    y.push(mean);
    low.push(how === "range" ? Math.min(...values) : mean - half);
    high.push(how === "range" ? Math.max(...values) : mean + half);
  }
  return { x, y, low, high };
}

/** Align series on one axis: all x values, ascending; null for missing values of a series. */
export function aligned(series: Points[]): { x: number[]; columns: Numbers[] } {
  const x = [...new Set(series.flatMap((one) => one.x))].sort((a, b) => a - b);
  const place = new Map(x.map((value, at) => [value, at]));
  const columns = series.map((one) => {
    const column: Numbers = new Array<number | null>(x.length).fill(null);
    one.x.forEach((value, at) => {
      column[place.get(value) ?? 0] = one.y[at] ?? null;
    });
    return column;
  });
  return { x, columns };
}

/** Cumulative sums of columns, for stacked areas. */
export function stacked(columns: Numbers[]): Numbers[] {
  const tops: Numbers[] = [];
  for (const column of columns) {
    const below = tops.at(-1);
    tops.push(column.map((value, at) => (value ?? 0) + (below?.[at] ?? 0)));
  }
  return tops;
}

/** Columns as shares of their sum at each point. */
export function shares(columns: Numbers[]): Numbers[] {
  const sums = columns[0]?.map((_, at) => columns.reduce((sum, column) => sum + (column[at] ?? 0), 0)) ?? [];
  return columns.map((column) => column.map((value, at) => (sums[at] ? (value ?? 0) / (sums[at] ?? 1) : null)));
}

/** A line and the edges of its band, if any, as columns of a table. */
export function withBand({ id, label, x, y, band }: Line): (Points & { id: string; label: string })[] {
  const edges = band ? [{ id: `${id} low`, label: `${label}, low`, x, y: band.low }, { id: `${id} high`, label: `${label}, high`, x, y: band.high }] : [];
  return [{ id, label, x, y }, ...edges];
}

/** First, last, minimum and maximum of a line as text, for screen readers. */
export function describe(line: Points, form: (value: number) => string): string {
  const values = line.y.filter(isNumber);
  const first = values[0];
  const last = values.at(-1);
  if (first === undefined || last === undefined) return "no values";
  const least = values.reduce((a, b) => Math.min(a, b));
  const most = values.reduce((a, b) => Math.max(a, b));
  return `from ${form(first)} to ${form(last)}, between ${form(least)} and ${form(most)}`;
}

/** Choose a limited number of positions evenly, including the last one. */
export function thinned(length: number, most: number): number[] {
  if (length <= most) return Array.from({ length }, (_, at) => at);
  return Array.from({ length: most }, (_, at) => Math.round((at * (length - 1)) / (most - 1)));
}
