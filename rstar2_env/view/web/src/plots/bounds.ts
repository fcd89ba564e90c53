/* The range of the axis of values, and the labels of its ticks. */
import { number } from "../format";

/** Range of the y axis: a margin around the values; shares stay between 0 and 1, and a constant gets a small range. */
export function bounds(min: number | null, max: number | null, share: boolean): [number, number] {
  const [low, high] = [min ?? 0, max ?? 1];
  const margin = share ? Math.max((high - low) * 0.08, 0.01) : high > low ? (high - low) * 0.08 : Math.abs(high) * 0.1 || 1;
  const wide: [number, number] = [low - margin, high + margin];
  if (!share) return low >= 0 ? [Math.max(0, wide[0]), wide[1]] : wide;
  return [low >= 0 ? Math.max(0, wide[0]) : wide[0], high <= 1 ? Math.min(1, wide[1]) : wide[1]];
}

/** Most significant digits of the labels of ticks. */
const MOST_DIGITS = 7;

/** Labels of ticks: numbers have as many digits as it takes to tell them apart. */
export function tickLabels(ticks: (number | null)[], form: (value: number) => string): string[] {
  const labels = (digits: number) => ticks.map((tick) => (tick === null ? "" : form === number ? number(tick, digits) : form(tick)));
  for (let digits = 3; digits < MOST_DIGITS; digits++) {
    const found = labels(digits);
    if (new Set(found).size === ticks.length) return found;
  }
  return labels(MOST_DIGITS);
}
