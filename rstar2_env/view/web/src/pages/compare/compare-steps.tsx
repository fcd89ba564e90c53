/* Way to the comparison of two steps of a run. */
import { path } from "../../data/address";
import { useLoad } from "../../data/hooks";
import type { Statuses } from "../../data/types";
import { href } from "../../shell/router";
import { LinkButton } from "../../ui/link-button";

/** The first and the last of a split's steps, as parts of an address; null if there are not two. */
export function endsOf(steps: number[]): { a_step: string; b_step: string } | null {
  return steps.length < 2 ? null : { a_step: `${steps[0]}`, b_step: `${steps.at(-1)}` };
}

/** The splits of an exported run that have two steps or more; the chosen one (that of the address, else the first); and its two steps that the export compares, swapped if the address has them so. Null without such a split. */
export function heldSteps(steps: Record<string, number[]>, query: Record<string, string>) {
  const held = Object.entries(steps).flatMap(([split, all]) => {
    const ends = endsOf(all);
    return ends ? [{ split, steps: ends }] : [];
  });
  const chosen = held.find(({ split }) => split === query["split"]) ?? held[0];
  if (!chosen) return null;
  const { a_step, b_step } = chosen.steps;
  const swaps = query["a_step"] === b_step && query["b_step"] === a_step;
  return { splits: held.map(({ split }) => split), split: chosen.split, steps: swaps ? { a_step: b_step, b_step: a_step } : chosen.steps };
}

/** Link to the comparison of the first with the last step, where each problem is paired with itself. */
export function CompareSteps({ run, split }: { run: string; split: string }) {
  const ends = endsOf(useLoad<Statuses>(path("runs", run, "statuses"), { split }, run).value?.steps ?? []);
  return ends && <LinkButton to={href(["compare"], { a: run, b: run, split, ...ends })}>Compare two steps</LinkButton>;
}
