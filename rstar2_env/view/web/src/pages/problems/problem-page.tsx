/* One problem: success by step, and its episodes. */
import { useMemo, useState } from "preact/hooks";
import { path } from "../../data/address";
import { useLoad } from "../../data/hooks";
import type { ProblemDetail } from "../../data/group-types";
import { count, number, percent } from "../../format";
import type { Axes } from "../../plots/canvas";
import type { Line } from "../../plots/lines";
import { PlotCard } from "../../plots/plot-card";
import { href } from "../../shell/router";
import { Chip, CorrectChip, KeptChip, StatusChips } from "../../ui/chip";
import { Figure } from "../../ui/figure";
import { Shown } from "../../ui/states";
import type { PageProps } from "../types";
import { RunFrame } from "../run-frame";

export function ProblemPage({ values, query }: PageProps) {
  const { run = "", problem = "" } = values;
  const load = useLoad<ProblemDetail>(path("runs", run, "problems", problem), { split: query["split"] }, run);
  return (
    <RunFrame run={run} tab="problems">
      {() => (
        <Shown load={load} what="Reading the problem">
          {(found) => (
            <>
              <div class="group-head">
                <div>
                  <h2>{found.problem_id || "A problem without a name"}</h2>
                  <p class="question pre">{found.question}</p>
                  <p class="page-facts">
                    <span class="chips">
                      {found.task && <Chip>{found.task}</Chip>}
                      {found.difficulty && <Chip>{found.difficulty}</Chip>}
                      {found.gold !== null && found.gold !== undefined && <Chip>gold answer {found.gold}</Chip>}
                    </span>
                    <a href={href(["runs", run, "episodes"], { problem: found.problem_id })}>all episodes</a>
                    <a href={href(["runs", run, "groups"], { problem: found.problem_id })}>all groups</a>
                  </p>
                </div>
              </div>
              <dl class="figures" aria-label="Figures">
                <Figure name="Success" value={percent(found.rate)} />
                <Figure name="Episodes" value={count(found.seen)} />
                <Figure name="Failed calls" value={percent(found.tool_error_share)} />
                <Figure name="Tokens per episode" value={number(found.tokens)} />
              </dl>
              <OverTime problem={found} linkOf={(step) => href(["runs", run, "episodes"], { split: query["split"], problem: found.problem_id, step })} />
              <h2 class="section-title">Episodes, newest first</h2>
              <Episodes run={run} problem={found} />
            </>
          )}
        </Shown>
      )}
    </RunFrame>
  );
}

function OverTime({ problem, linkOf }: { problem: ProblemDetail; linkOf: (step: number) => string }) {
  const [zoom, setZoom] = useState<[number | null, number | null]>([null, null]);
  const axes: Axes = { logX: false, logY: false, from: zoom[0], to: zoom[1] };
  const lines = useMemo(
    (): Line[] => [{ id: "success", label: "correct answers", color: 0, dash: 0, x: problem.steps, y: problem.success }],
    [problem],
  );
  if (problem.steps.length < 2) return null;
  return <PlotCard title="Success by step" help="Share of correct answers at each step in which the problem was played." lines={lines} axes={axes} form={percent} onZoom={(from, to) => setZoom([from, to])} linkOf={linkOf} />;
}

function Episodes({ run, problem }: { run: string; problem: ProblemDetail }) {
  return (
    <div class="card scroll-x" tabIndex={0} role="region" aria-label="Episodes of the problem">
      <table class="plain-table group-table">
        <thead>
          <tr>
            <th scope="col" class="right">
              Step
            </th>
            <th scope="col">Episode</th>
            <th scope="col">Answer</th>
            <th scope="col">Selection</th>
            <th scope="col" class="right">
              Reward
            </th>
            <th scope="col">Calls</th>
            <th scope="col">End</th>
          </tr>
        </thead>
        <tbody>
          {problem.episodes.map((one) => (
            <tr key={one.key} class={one.kept === false ? "dropped" : ""}>
              <td class="right">{count(one.step)}</td>
              <th scope="row">
                <a href={href(["runs", run, "episodes", one.key])}>{one.key}</a>
              </th>
              <td>
                <CorrectChip correct={one.correct} /> {one.answer !== null && <span class="mono">{one.answer}</span>}
              </td>
              <td>
                <KeptChip kept={one.kept} reason={one.reason} />
              </td>
              <td class="right">{number(one.reward)}</td>
              <td>
                <StatusChips counts={one.statuses} injected={one.injected} />
              </td>
              <td>{one.end}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
