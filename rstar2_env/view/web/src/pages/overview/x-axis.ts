/* The x axis of the curves: steps, or the time or the tokens that a run had used at each step. */
import type { Mark, Metrics } from "../../data/types";
import { count, isNumber, seconds, stepNumber } from "../../format";
import type { PlacedMark } from "../../plots/marks";
import { CARDS, STEP_TIME } from "./cards";

export type XAxis = "step" | "time" | "tokens";

export interface XKind {
  label: string;
  /** Name below the plots, and in their tables. */
  unit: string;
  /** Unit of the fields in which the user types a range. */
  counts: string;
  form: (value: number) => string;
}

export const X_AXES: Record<XAxis, XKind> = {
  step: { label: "Steps", unit: "step", counts: "step", form: stepNumber },
  time: { label: "Time spent on steps", unit: "time", counts: "second", form: (value) => (value === 0 ? "0 s" : seconds(value)) },
  tokens: { label: "Computed tokens", unit: "tokens", counts: "token", form: count },
};

/** Parts of a step's time that overlap with training if episodes are played ahead; the step then only waits for them. */
const PLAYED_AHEAD = new Set(["seconds/rollout", "seconds/reward", "seconds/select", "seconds/advantage"]);
const PARTS = CARDS.find((card) => card.title === STEP_TIME)?.metrics.map(([name]) => name) ?? [];

/** What a run had used at each of its steps, in total; null if it does not record this. */
export function positions(metrics: Metrics, axis: XAxis): number[] | null {
  if (axis === "step") return metrics.steps;
  const names = axis === "tokens" ? ["tokens/computed"] : PARTS;
  let total = 0;
  let known = false;
  const found = metrics.steps.map((_, at) => {
    const ahead = isNumber(metrics.series["seconds/wait"]?.[at]);
    for (const name of names) {
      const value = metrics.series[name]?.[at];
      if (!isNumber(value) || (ahead && PLAYED_AHEAD.has(name))) continue;
      total += value;
      known = true;
    }
    return total;
  });
  return known ? found : null;
}

/** The steps of a run on the x axis. */
export class Placement {
  private constructor(
    private readonly steps: number[],
    private readonly xs: number[],
  ) {}

  static of(metrics: Metrics, axis: XAxis): Placement | null {
    const xs = positions(metrics, axis);
    return xs && new Placement(metrics.steps, xs);
  }

  /** Position of a step: that of the last recorded step up to it. */
  x(step: number): number {
    if (this.xs === this.steps) return step;
    return this.xs[this.steps.findLastIndex((one) => one <= step)] ?? 0;
  }

  /** The first step at a position. */
  step(x: number): number {
    return this.xs === this.steps ? x : (this.steps[this.xs.indexOf(x)] ?? 0);
  }

  metrics(metrics: Metrics): Metrics {
    return { ...metrics, steps: this.xs };
  }

  marks(marks: Mark[]): PlacedMark[] {
    return marks.map(({ step, events }) => ({ x: this.x(step), events }));
  }
}
