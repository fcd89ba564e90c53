/* The sampler of a run: currently hard problems, and the progress of its curriculum. */
import { useMemo, useState } from "preact/hooks";
import { path } from "../../data/address";
import { useLoad } from "../../data/hooks";
import type { HardProblem, Sampler } from "../../data/group-types";
import type { Metrics, RunDetail } from "../../data/types";
import { count, isNumber, number, percent } from "../../format";
import type { Axes } from "../../plots/canvas";
import { type Line, shares } from "../../plots/lines";
import { PlotCard } from "../../plots/plot-card";
import { href } from "../../shell/router";
import { Code } from "../../ui/code";
import { Figure } from "../../ui/figure";
import { Empty, Shown } from "../../ui/states";
import type { PageProps } from "../types";
import { RunFrame } from "../run-frame";
import { points } from "../overview/curves";
import { Bar } from "../problems/bar";
import { PartCard } from "./selector-card";
import { SAMPLERS } from "../../words";

const MOST_STATE = 20_000;

export function SamplerPage({ values }: PageProps) {
  return (
    <RunFrame run={values["run"] ?? ""} tab="sampler">
      {(detail) => <State detail={detail} />}
    </RunFrame>
  );
}

function State({ detail }: { detail: RunDetail }) {
  const { run } = detail;
  const load = useLoad<Sampler>(path("runs", run, "sampler"), {}, run);
  const metrics = useLoad<Metrics>(path("runs", run, "metrics"), {}, run).value;
  const [zoom, setZoom] = useState<[number | null, number | null]>([null, null]);
  const axes: Axes = { logX: false, logY: false, from: zoom[0], to: zoom[1] };
  const onZoom = (from: number | null, to: number | null) => setZoom([from, to]);
  return (
    <Shown load={load} what="Reading the sampler">
      {(sampler) => (
        <>
          {sampler.name && <PartCard kind="Sampler" part={sampler} words={sampler.summary || SAMPLERS[sampler.name]} />}
          <dl class="figures" aria-label="Figures">
            <Figure name="Problems played" value={count(sampler.seen)} />
            <Figure name="New problems in the last step" value={count(sampler.new_problems.at(-1))} />
            <Figure name="Groups refilled in the last step" value={count(sampler.refilled.at(-1))} />
          </dl>
          <h2 class="section-title">By step</h2>
          <div class="plot-grid">
            <Plots run={run} sampler={sampler} metrics={metrics} axes={axes} onZoom={onZoom} />
          </div>
          <Hardest run={run} problems={sampler.hardest} />
          <States states={sampler.states} />
        </>
      )}
    </Shown>
  );
}

interface PlotProps {
  run: string;
  sampler: Sampler;
  metrics: Metrics | null;
  axes: Axes;
  onZoom: (from: number | null, to: number | null) => void;
}

function Plots({ run, sampler, metrics, axes, onZoom }: PlotProps) {
  const groups = useMemo(() => areas(sampler.steps, { "all wrong": sampler.groups.all_wrong, mixed: sampler.groups.mixed, "all correct": sampler.groups.all_right }), [sampler]);
  const pools = useMemo(
    () => areas(sampler.counts.steps, { never: sampler.counts.hard, sometimes: sampler.counts.middle, always: sampler.counts.easy }),
    [sampler],
  );
  const reported = useMemo(() => figures(metrics), [metrics]);
  const kinds = reported.filter((line) => line.id.startsWith("share/"));
  const others = reported.filter((line) => !line.id.startsWith("share/"));
  return (
    <>
      {groups.length > 0 && (
        <PlotCard title="Groups by outcome" help="All-correct and all-wrong groups give no signal to advantages that compare episodes within a group." lines={groups} stack axes={axes} form={percent} onZoom={onZoom} linkOf={(step) => href(["runs", run, "groups"], { step })} />
      )}
      {pools.length > 0 && (
        <PlotCard title="Played problems by the result of their last group" help="Shares of problems that were never, sometimes or always solved in their last group." lines={pools} stack axes={axes} form={percent} onZoom={onZoom} />
      )}
      {kinds.length > 0 && (
        <PlotCard title="Kinds of problems" help="Probability that the sampler draws a problem of each kind." lines={kinds.map((line) => ({ ...line, label: line.label.slice(6) }))} stack axes={axes} form={percent} onZoom={onZoom} />
      )}
      {others.map((line) => (
        <PlotCard key={line.id} title={`Sampler: ${line.label}`} lines={[{ ...line, color: 0, dash: 0 }]} axes={axes} form={number} onZoom={onZoom} />
      ))}
      {sampler.new_problems.length > 1 && (
        <PlotCard title="New problems" lines={[{ id: "new", label: "new problems", color: 4, dash: 0, x: sampler.steps, y: sampler.new_problems }]} axes={axes} form={count} onZoom={onZoom} />
      )}
    </>
  );
}

/** Convert counts to areas of shares that sum to one. */
function areas(x: number[], columns: Record<string, number[]>): Line[] {
  const names = Object.keys(columns);
  const parts = shares(Object.values(columns));
  return x.length ? names.map((label, at) => ({ id: label, label, color: at, dash: at, x, y: parts[at] ?? [] })) : [];
}

/** Figures reported by the sampler at each step. */
function figures(metrics: Metrics | null): Line[] {
  return Object.entries(metrics?.series ?? {})
    .filter(([name, values]) => name.startsWith("sampler/") && values.some(isNumber))
    .flatMap(([name], at) => points(metrics, name).map((line) => ({ id: name.slice(8), label: name.slice(8), color: at, dash: at, ...line })));
}

const MOST_HARD = 25;

function Hardest({ run, problems: all }: { run: string; problems: HardProblem[] }) {
  const problems = all.filter((one) => one.success !== 1).slice(0, MOST_HARD);
  return (
    <>
      <h2 class="section-title">Hardest problems</h2>
      {problems.length ? (
        <div class="card scroll-x" tabIndex={0} role="region" aria-label="Hardest problems">
          <table class="plain-table">
            <thead>
              <tr>
                <th scope="col">Problem</th>
                <th scope="col">Question</th>
                <th scope="col">Success, last step</th>
                <th scope="col" class="right">
                  Episodes
                </th>
                <th scope="col" class="right">
                  Last step
                </th>
              </tr>
            </thead>
            <tbody>
              {problems.map((problem) => (
                <tr key={problem.problem_id}>
                  <th scope="row">
                    <a href={href(["runs", run, "problems", problem.problem_id])}>{problem.problem_id}</a>
                  </th>
                  <td class="long">{problem.question}</td>
                  <td>
                    <Bar share={problem.success} />
                  </td>
                  <td class="right">{count(problem.seen)}</td>
                  <td class="right">{count(problem.last_step)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <Empty title={all.length ? "Every problem was solved in its last step" : "No problems played yet"} />
      )}
    </>
  );
}

function States({ states }: { states: Sampler["states"] }) {
  if (!states.length) return null;
  return (
    <>
      <h2 class="section-title">State of the sampler in checkpoints</h2>
      {states.map(({ step, file, state, note }) => (
        <details key={step} class="further">
          <summary>
            After step {step} <span class="quiet mono">{file}</span>
          </summary>
          {note && <p class="quiet">{note}</p>}
          {state !== null && state !== undefined && <Code text={JSON.stringify(state, null, 1).slice(0, MOST_STATE)} language="json" label={`State after step ${step}`} />}
        </details>
      ))}
    </>
  );
}
