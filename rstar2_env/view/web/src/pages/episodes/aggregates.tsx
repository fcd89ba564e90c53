/* Figures of the filtered episodes, above the table. */
import { path } from "../../data/address";
import { useLoad } from "../../data/hooks";
import type { Aggregates, RunDetail } from "../../data/types";
import { isNumber, number, percent } from "../../format";
import { Spark } from "../problems/bar";

export function AggregatesLine({ detail, filters }: { detail: RunDetail; filters: Record<string, string> }) {
  const { value } = useLoad<Aggregates>(path("runs", detail.run, "aggregates"), filters, detail.run);
  // An export holds only a sample of the episodes: figures of it would be taken for figures of the run.
  if (!value?.figures) return null;
  const { figures, steps, success } = value;
  const trend = success.filter(isNumber);
  return (
    <p class="aggregates">
      <span>
        {percent(figures.success)} correct, mean reward {number(figures.reward)}, {number(figures.tokens)} tokens and {number(figures.turns)} turns per episode
        {isNumber(figures.tool_error_share) && `, ${percent(figures.tool_error_share)} of ${number(figures.calls)} calls failed`}.
      </span>
      {trend.length > 1 && (
        <span class="aggregate-trend">
          Correct by step, {steps[0]} to {steps.at(-1)}: <Spark values={trend} />
        </span>
      )}
    </p>
  );
}
