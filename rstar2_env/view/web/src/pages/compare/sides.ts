/* The two sides of a comparison: their steps and places in words, and what to do if they share no problems. */
import type { ComparePage as Answer } from "../../data/group-types";
import type { RunRow } from "../../data/types";
import { count, isNumber } from "../../format";

export interface Sides {
  a: RunRow;
  b: RunRow;
  split: string;
  /** The steps of each run that have episodes of the split. */
  known: [number[], number[]];
}

/** Words of an address that leave the steps of both sides to their defaults, which suit the runs and the split. */
export const DEFAULT_STEPS = { a_step: null, b_step: null };

/** The sides of a comparison: runs by name, and steps, which are empty where they are left to their defaults. */
export type Compared = {
  a: string;
  b: string;
  a_step: string;
  b_step: string;
};

/** Words of an address that swap the sides; null if they are the same. The shown steps count: those of the address can be missing, or left out of an export. */
export function swappedSides(query: Record<string, string>, shown: Compared | null): Compared | null {
  const [a, b] = [query["a"] ?? "", query["b"] ?? ""];
  const steps = shown?.a === a && shown.b === b ? shown : { a_step: query["a_step"] ?? "", b_step: query["b_step"] ?? "" };
  return a === b && steps.a_step === steps.b_step ? null : { a: b, b: a, a_step: steps.b_step, b_step: steps.a_step };
}

/** The last step after step 0 that has episodes of both runs of training; null if there is none. */
function lastOfBoth({ a, b, known: [ofA, ofB] }: Sides): number | null {
  if (a.kind === "evaluation" || b.kind === "evaluation") return null;
  return ofA.findLast((step) => step > 0 && ofB.includes(step)) ?? null;
}

/** Label of the choice of no step. */
export function wholeLabel(sides: Sides): string {
  if (sides.split !== "eval") return "all steps";
  return sides.a.run !== sides.b.run && lastOfBoth(sides) !== null ? "the last of both" : "the last";
}

/** Options of a side's step: the steps with episodes; a step without episodes that is in the address cannot be chosen again. */
export function stepOptions(steps: number[], value: string, split: string, whole: string) {
  const options = steps.map((step) => ({ value: `${step}`, label: count(step) }));
  const missing = value && !steps.includes(Number(value)) ? [{ value, label: `${value} (${split === "eval" ? "not evaluated" : "no episodes"})`, disabled: true }] : [];
  return [{ value: "", label: whole }, ...missing, ...options];
}

/** When the episodes of each side were generated, such as "after step 3"; empty for one of two runs that is an evaluation, which has no steps. */
export function whenOf({ a, b, split }: Omit<Sides, "known">, steps: Answer["steps"]): [string, string] {
  const when = (run: RunRow, step: number | null | undefined) => {
    if (run.kind === "evaluation") return a.run === b.run ? "in this evaluation" : "";
    return isNumber(step) ? `after step ${count(step)}` : split === "eval" ? "after the last step" : "over all steps";
  };
  return [when(a, steps[0]), when(b, steps[1])];
}

/** The places of both sides in a sentence: steps of the one run, or the runs, with their steps if these differ. */
export function placesOf({ a, b }: Pick<Sides, "a" | "b">, when: [string, string]): [string, string] {
  if (a.run === b.run) return when;
  const place = (run: RunRow, at: string) => (when[0] === when[1] || !at ? `in ${run.name}` : `in ${run.name} ${at}`);
  return [place(a, when[0]), place(b, when[1])];
}

export interface Way {
  label: string;
  /** Words of the address that change. */
  query: Record<string, string | null>;
}

/** What is true of sides without a counted problem in common, and comparisons that may have one. */
export function nothingShared(sides: Sides, steps: Answer["steps"], shared: number): { says: string; ways: Way[] } {
  const { a, b, split, known } = sides;
  const one = a.run === b.run;
  const missing = [a, b].flatMap((run, which) => {
    const step = steps[which];
    return isNumber(step) && !known[which]?.includes(step) ? [`${one ? "" : `in ${run.name} `}after step ${count(step)}`] : [];
  });
  const ways: Way[] = [];
  if (missing.length) {
    const near = nearest(sides, steps);
    if (near) ways.push(near);
  }
  if (split !== "eval" && a.episodes.eval > 0 && b.episodes.eval > 0) ways.push({ label: "Compare the held-out evaluations", query: { split: "eval", ...DEFAULT_STEPS } });
  if (missing.length) return { says: `There ${split === "eval" ? "is no evaluation" : "are no training episodes"} ${[...new Set(missing)].join(" or ")}.`, ways };
  if (shared > 0) return { says: `No problem has counted episodes both ${placesOf(sides, whenOf(sides, steps)).join(" and ")}.`, ways };
  return { says: noneIn(one), ways };
}

/** A sentence on sides without a problem in common. */
export function noneIn(one: boolean): string {
  return `${one ? "These steps" : "The two sides"} share no problems in this split.`;
}

/** The comparison of the steps nearest to the asked ones that have episodes: of one step of two runs if one was asked for. */
function nearest({ a, b, known: [ofA, ofB] }: Sides, [first, second]: Answer["steps"]): Way | null {
  const one = a.run === b.run;
  const both = ofA.filter((step) => ofB.includes(step));
  const same = !one && first === second && both.length > 0;
  let found = [closest(same ? both : ofA, first), closest(same ? both : ofB, second)];
  if (one && found[0] === found[1]) found = [ofA[0], ofA.at(-1)];
  const [left, right] = found;
  if (one && left === right) return null;
  const named = [left, right].filter(isNumber).map(count);
  const label = left === right ? `Compare both after step ${named[0]}` : `Compare step${named.length > 1 ? "s" : ""} ${named.join(" and ")}`;
  return named.length ? { label, query: { a_step: isNumber(left) ? `${left}` : null, b_step: isNumber(right) ? `${right}` : null } } : null;
}

function closest(steps: number[], step: number | null | undefined): number | undefined {
  return isNumber(step) ? [...steps].sort((x, y) => Math.abs(x - step) - Math.abs(y - step))[0] : undefined;
}
