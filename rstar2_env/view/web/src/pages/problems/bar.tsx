/* A share as a bar with a number, and a series of shares as a small line. */
import { isNumber, percent } from "../../format";

export function Bar({ share }: { share: number | null }) {
  const part = isNumber(share) ? Math.max(0, Math.min(1, share)) : 0;
  return (
    <span class="bar">
      <svg width="60" height="8" aria-hidden="true">
        <rect class="bar-ground" width="60" height="8" rx="2" />
        <rect class="bar-part" width={60 * part} height="8" rx="2" />
      </svg>
      <span class="number">{percent(share)}</span>
    </span>
  );
}

const WIDE = 110;
const HIGH = 22;

/** A series as a small line between `low` and `high`. */
export function Spark({ values, low = 0, high = 1, form = percent }: { values: number[]; low?: number; high?: number; form?: (value: number) => string }) {
  if (!values.length) return null;
  const x = (at: number) => (values.length > 1 ? 3 + ((WIDE - 6) * at) / (values.length - 1) : WIDE / 2);
  const y = (value: number) => HIGH - 3 - (HIGH - 6) * Math.max(0, Math.min(1, (value - low) / (high - low || 1)));
  const last = values.at(-1) ?? 0;
  return (
    <svg class="spark" width={WIDE} height={HIGH} role="img" aria-label={`From ${form(values[0] ?? 0)} to ${form(last)}`}>
      <line class="spark-base" x1="3" x2={WIDE - 3} y1={y(low)} y2={y(low)} />
      <polyline points={values.map((value, at) => `${x(at)},${y(value)}`).join(" ")} />
      <circle cx={x(values.length - 1)} cy={y(last)} r="2.5" />
    </svg>
  );
}
