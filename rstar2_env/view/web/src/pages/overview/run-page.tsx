/* The overview of one run: figures, stages of a pipeline, plots. */
import type { EpisodeFigures, RunDetail } from "../../data/types";
import { count, isNumber, number, percent, visible } from "../../format";
import type { PageProps } from "../types";
import { RunFrame } from "../run-frame";
import { Findings } from "./findings";
import { Health } from "./health";
import { Plots } from "./plots";
import { Stages } from "./stages";
import { Summary } from "./summary";
import { Ways } from "./ways";
import { Figure } from "../../ui/figure";
import { FIGURES, SPLITS } from "../../words";

export function RunPage({ values, query }: PageProps) {
  return (
    <RunFrame run={values["run"] ?? ""} tab="overview">
      {(detail) => (
        <>
          {detail.kind === "pipeline" && (detail.stages.length > 0 || detail.events.length > 0) && <Stages stages={detail.stages} />}
          {detail.verdict.length > 0 && (
            <section class="card" aria-label="Verdict">
              {detail.verdict.map((sentence) => (
                <p key={sentence}>{visible(sentence)}</p>
              ))}
            </section>
          )}
          <Health detail={detail} />
          {detail.kind !== "pipeline" && <Findings run={detail.run} />}
          <Ways detail={detail} />
          <Figures detail={detail} />
          {detail.summary && <Summary summary={detail.summary} />}
          {(detail.kind === "training" || detail.kind === "sft" || detail.metric_names.length > 0) &&
            detail.kind !== "evaluation" && <Plots rows={[detail]} query={query} />}
        </>
      )}
    </RunFrame>
  );
}

function Figures({ detail }: { detail: RunDetail }) {
  const { train, eval: held } = detail.episode_figures;
  const parts: [string, EpisodeFigures | null][] = [
    [detail.kind === "evaluation" ? "" : SPLITS.eval, held],
    [SPLITS.train, train],
  ];
  const shown = parts.filter((part): part is [string, EpisodeFigures] => part[1] !== null && part[1].episodes > 0);
  if (!shown.length) return null;
  return (
    <>
      {shown.map(([label, figures]) => (
        <dl class="figures" key={label} aria-label={label || "Figures"}>
          <Figure name={label ? `${FIGURES.success}, ${label}` : FIGURES.success} value={percent(figures.success)} />
          <Figure name={FIGURES.reward} value={number(figures.reward)} />
          <Figure
            name={FIGURES.tool_error_share}
            value={percent(figures.tool_error_share)}
            {...(isNumber(figures.tool_error_share_correct)
              ? { note: `${percent(figures.tool_error_share_correct)} in correct episodes` }
              : {})}
          />
          <Figure name={FIGURES.tokens} value={number(figures.tokens)} />
          <Figure name={FIGURES.turns} value={number(figures.turns)} />
          <Figure name={FIGURES.episodes} value={count(figures.episodes)} note={`${count(figures.problems)} problems`} />
        </dl>
      ))}
    </>
  );
}
