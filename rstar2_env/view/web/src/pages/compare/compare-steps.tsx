/* Way to the comparison of two steps of a run. */
import { path } from "../../data/address";
import { useLoad } from "../../data/hooks";
import type { Statuses } from "../../data/types";
import { href } from "../../shell/router";
import { LinkButton } from "../../ui/link-button";

/** Link to the comparison of the first with the last step, where each problem is paired with itself. */
export function CompareSteps({ run, split }: { run: string; split: string }) {
  const steps = useLoad<Statuses>(path("runs", run, "statuses"), { split }, run).value?.steps ?? [];
  if (steps.length < 2) return null;
  return <LinkButton to={href(["compare"], { a: run, b: run, split, a_step: `${steps[0]}`, b_step: `${steps.at(-1)}` })}>Compare two steps</LinkButton>;
}
