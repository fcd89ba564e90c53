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

/** The splits of an exported run that have two steps or more; the chosen one (the wanted one, else the first); and its two steps that the export compares. Null without such a split. */
export function heldSteps(steps: Record<string, number[]>, wanted: string | undefined) {
  const held = Object.entries(steps).flatMap(([split, all]) => {
    const ends = endsOf(all);
    return ends ? [{ split, steps: ends }] : [];
  });
  const chosen = held.find(({ split }) => split === wanted) ?? held[0];
  return chosen ? { splits: held.map(({ split }) => split), ...chosen } : null;
}

/** Link to the comparison of the first with the last step, where each problem is paired with itself. */
export function CompareSteps({ run, split }: { run: string; split: string }) {
  const ends = endsOf(useLoad<Statuses>(path("runs", run, "statuses"), { split }, run).value?.steps ?? []);
  return ends && <LinkButton to={href(["compare"], { a: run, b: run, split, ...ends })}>Compare two steps</LinkButton>;
}
