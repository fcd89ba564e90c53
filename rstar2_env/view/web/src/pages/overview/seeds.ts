/* Runs that differ only in their seeds, in sentences. */
import type { Metrics } from "../../data/types";
import { isNumber, percent, points } from "../../format";
import type { Set as RunSet } from "./curves";

const FIGURE = "eval/pass_rate";

/** For each set of several runs, their held-out success at the last step that all of them have evaluated. */
export function seedSentences(sets: RunSet[], values: Map<string, Metrics>): string[] {
  return sets.flatMap(({ label, runs }) => {
    const rates = runs.map((run) => byStep(values.get(run)));
    const step = Math.max(...[...(rates[0]?.keys() ?? [])].filter((one) => rates.every((rate) => rate.has(one))));
    const found = rates.map((rate) => rate.get(step)).filter(isNumber);
    if (runs.length < 2 || found.length < runs.length) return [];
    const [low, high] = [Math.min(...found), Math.max(...found)];
    const mean = found.reduce((sum, one) => sum + one, 0) / found.length;
    return [`${label}: held-out success at step ${step} is ${percent(mean)} on average, from ${percent(low)} to ${percent(high)}, so the seeds differ by ${points(high - low)}.`];
  });
}

function byStep(metrics: Metrics | undefined): Map<number, number> {
  const found = new Map<number, number>();
  metrics?.series[FIGURE]?.forEach((value, at) => {
    const step = metrics.steps[at];
    if (isNumber(value) && step !== undefined) found.set(step, value);
  });
  return found;
}
