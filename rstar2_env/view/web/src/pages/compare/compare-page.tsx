/* Comparison of two runs by problem: paired difference, gained and lost problems, links to both episodes. */
import { path } from "../../data/address";
import { useDataContext, useLoad } from "../../data/hooks";
import type { ComparePage as Answer, CompareRow, Side } from "../../data/group-types";
import type { RunRow, Runs, Statuses } from "../../data/types";
import { count, isNumber, many, number, percent, points, signed, way } from "../../format";
import { useKnownRuns } from "../../shell/known-runs";
import { href, setQuery } from "../../shell/router";
import { Choose, TextField } from "../../ui/fields";
import { Empty, Notes, Shown } from "../../ui/states";
import { Table, type TableColumn } from "../../ui/table";
import { useWindowed } from "../../ui/windowed";
import { DifferenceTable } from "../overview/difference";
import type { PageProps } from "../types";
import { Figure } from "../../ui/figure";
import { heldSteps } from "./compare-steps";

export function ComparePage({ query }: PageProps) {
  const load = useLoad<Runs>(path("runs"));
  useKnownRuns(load.value?.runs.map((row) => row.run) ?? []);
  return (
    <Shown load={load} what="Reading the runs">
      {({ runs }) => {
        const known = runs.filter((row) => row.episodes.train + row.episodes.eval > 0);
        const of = (run: string | undefined) => known.find((row) => row.run === run);
        const [a, b] = [of(query["a"]), of(query["b"])];
        return (
          <>
            <div class="page-head">
              <h1>Compare two runs, or two steps of a run, by problem</h1>
            </div>
            <Choice runs={known} a={query["a"] ?? ""} b={query["b"] ?? ""} />
            {a && b ? <Compared a={a} b={b} query={query} /> : <Empty title="Choose two runs">Problems that occur in both runs are compared.</Empty>}
          </>
        );
      }}
    </Shown>
  );
}

function Choice({ runs, a, b }: { runs: RunRow[]; a: string; b: string }) {
  const options = [{ value: "", label: "Choose…" }, ...runs.map((row) => ({ value: row.run, label: row.name }))];
  return (
    <div class="toolbar compare-choice">
      <Choose label="First run" value={a} options={options} onChange={(run) => setQuery({ a: run })} />
      <button type="button" class="button" onClick={() => setQuery({ a: b, b: a })} disabled={!a && !b}>
        <span aria-hidden="true">⇄</span> Swap
      </button>
      <Choose label="Second run" value={b} options={options} onChange={(run) => setQuery({ b: run })} />
    </div>
  );
}

const SPLITS = ["eval", "train"] as const;

interface TwoRuns {
  a: RunRow;
  b: RunRow;
  query: Record<string, string>;
}

function Compared({ a, b, query }: TwoRuns) {
  const { source } = useDataContext();
  const both = SPLITS.filter((split) => a.episodes[split] > 0 && b.episodes[split] > 0);
  if (source.exported && a.run === b.run) return <HeldSteps a={a} b={b} query={query} />;
  // In an export, two runs are compared over all their steps.
  const steps = source.exported ? { a_step: "", b_step: "" } : { a_step: query["a_step"] ?? "", b_step: query["b_step"] ?? "" };
  return <Comparison a={a} b={b} query={query} splits={both} split={query["split"] ?? both[0] ?? "eval"} steps={steps} />;
}

/** Two steps of a run in an export. */
function HeldSteps(props: TwoRuns) {
  const at = path("runs", props.a.run, "statuses");
  const loads = { eval: useLoad<Statuses>(at, { split: "eval" }), train: useLoad<Statuses>(at, { split: "train" }) };
  return (
    <Shown load={loads.eval} what="Reading the steps">
      {({ steps: heldOut }) => (
        <Shown load={loads.train} what="Reading the steps">
          {({ steps: training }) => {
            const found = heldSteps({ eval: heldOut, train: training }, props.query["split"]);
            if (!found) return <Empty title="Choose two runs">The exported page contains no two steps of this run to compare.</Empty>;
            return <Comparison {...props} {...found} />;
          }}
        </Shown>
      )}
    </Shown>
  );
}

interface ComparisonProps extends TwoRuns {
  /** The splits that can be compared. */
  splits: string[];
  split: string;
  steps: { a_step: string; b_step: string };
}

function Comparison({ a, b, query, splits, split, steps }: ComparisonProps) {
  const asked = { a: a.run, b: b.run, split, ...steps, q: query["q"] ?? "", change: query["change"] ?? "", sort: query["sort"] ?? "difference" };
  const one = a.run === b.run;
  const after = (step: string) => (step ? `after step ${step}` : split === "eval" ? "after the last step" : "over all steps");
  const sides: [string, string] = one ? [after(steps.a_step), after(steps.b_step)] : [a.name, b.name];
  const rows = useWindowed<CompareRow>("api/compare", asked);
  const load = useLoad<Answer>("api/compare", { a: a.run, b: b.run, split, ...steps, limit: 1 });
  return (
    <>
      <div class="toolbar" role="group" aria-label="Compared episodes">
        {splits.length > 1 && (
          <Choose
            label="Split"
            value={split}
            options={[
              { value: "eval", label: "held out" },
              { value: "train", label: "training" },
            ]}
            onChange={(value) => setQuery({ split: value })}
          />
        )}
        <StepChoice label={one ? "First step" : "Step of the first run"} run={a} split={split} value={steps.a_step} onChange={(step) => setQuery({ a_step: step })} />
        <StepChoice label={one ? "Second step" : "Step of the second run"} run={b} split={split} value={steps.b_step} onChange={(step) => setQuery({ b_step: step })} />
      </div>
      {one && steps.a_step === steps.b_step && <Notes notes={["The two sides are the same: choose two steps, or another run."]} />}
      <Shown load={load} what="Comparing">
        {(answer) => <Figures answer={answer} names={sides} steps={[a, b].map((row, which) => (one || row.kind === "evaluation" ? null : answer.steps[which] ?? null))} places={one ? sides : [`in ${a.name}`, `in ${b.name}`]} />}
      </Shown>
      <form class="toolbar" role="search" aria-label="Filter problems" onSubmit={(event) => event.preventDefault()}>
        <TextField label="Problem" type="search" wide value={query["q"] ?? ""} placeholder="text or id" onChange={(q) => setQuery({ q })} />
        <Choose
          label="Change"
          value={query["change"] ?? ""}
          options={[
            { value: "", label: "any" },
            { value: "gained", label: "gained" },
            { value: "lost", label: "lost" },
            { value: "same", label: "the same" },
          ]}
          onChange={(change) => setQuery({ change })}
        />
        <p class="quiet toolbar-hint" role="status">
          {rows.total === null ? "…" : many(rows.total, "problem")}
        </p>
      </form>
      <Table
        label="Problems that occur in both runs"
        name="compare"
        rows={rows}
        columns={columns(...sides)}
        rowKey={(row) => row.problem_id}
        to={(row) => href(["pair"], { a: `${a.run}/${row.a.keys[0] ?? ""}`, b: `${b.run}/${row.b.keys[0] ?? ""}` })}
        sort={asked.sort}
        onSort={(sort) => setQuery({ sort })}
        empty="No shared problems match these filters: change or remove one."
      />
      {a.run !== b.run && (
        <details class="further">
          <summary>
            <h2>Options that differ</h2>
          </summary>
          <DifferenceTable a={a.run} b={b.run} names={[a.name, b.name]} />
        </details>
      )}
    </>
  );
}

/** Choice of a step of one side; two steps of the same run can be compared. */
function StepChoice({ label, run, split, value, onChange }: { label: string; run: RunRow; split: string; value: string; onChange: (step: string) => void }) {
  const { source } = useDataContext();
  const load = useLoad<Statuses>(path("runs", run.run, "statuses"), { split });
  const steps = load.value?.steps ?? [];
  // An export compares only the first step with the last one.
  if (source.exported || (steps.length < 2 && !value)) return null;
  const known = [...new Set([...steps.map(String), ...(value ? [value] : [])])];
  const whole = split === "eval" ? "the last" : "all steps";
  return <Choose label={label} value={value} options={[{ value: "", label: whole }, ...known.map((step) => ({ value: step, label: count(Number(step)) }))]} onChange={onChange} />;
}

interface FiguresProps {
  answer: Answer;
  names: [string, string];
  /** The steps to name next to the figures; null for an evaluation, and if the names already contain them. */
  steps: (number | null)[];
  /** The names in a sentence: in a run, or after a step of the one run that is compared with itself. */
  places: [string, string];
}

function Figures({ answer, names, steps, places }: FiguresProps) {
  const { figures } = answer;
  const at = (which: number) => (isNumber(steps[which]) ? `after step ${count(steps[which])}` : "");
  const surely = isNumber(figures.low) && isNumber(figures.high) && (figures.low > 0 || figures.high < 0);
  const alone = figures.only_a + figures.only_b;
  return (
    <>
      <p class="in-words">{inWords(answer, places)}</p>
      <dl class="figures" aria-label="Figures of both runs">
        <Figure name={names[0]} value={percent(figures.a)} note={at(0)} />
        <Figure name={names[1]} value={percent(figures.b)} note={at(1)} />
        <Figure
          name="Difference"
          value={signed(figures.difference, points)}
          note={isNumber(figures.low) ? `95%: ${signed(Number((100 * figures.low).toFixed(1)))} to ${signed(figures.high, points)}${surely ? "" : ", may be due to chance"}` : ""}
        />
        <Figure name="Gained" value={`▲ ${count(figures.gained)}`} note={figures.gained === 1 ? "problem" : "problems"} />
        <Figure name="Lost" value={`▼ ${count(figures.lost)}`} note={figures.lost === 1 ? "problem" : "problems"} />
        <Figure name="The same" value={count(figures.same)} note={`of ${count(figures.problems)}`} />
      </dl>
      {alone > 0 && (
        <Notes notes={[`${many(alone, "problem")} ${alone === 1 ? "was" : "were"} played on only one side and ${alone === 1 ? "is" : "are"} not compared: ${count(figures.only_a)} ${places[0]}, ${count(figures.only_b)} ${places[1]}.`]} />
      )}
    </>
  );
}

/** The result of a comparison in a sentence, with the places of both sides, such as "in RUN" or "after step 3". A difference that rounds to no points is none. */
export function inWords({ figures }: Pick<Answer, "figures">, [a, b]: [string, string]): string {
  const { difference, low, high } = figures;
  if (!isNumber(difference)) return `No problem has counted episodes both ${a} and ${b}.`;
  const side = way(difference);
  const differs = side ? `${points(Math.abs(difference))} ${side > 0 ? "higher" : "lower"}` : "the same";
  const chance = isNumber(low) && isNumber(high) ? (low > 0 || high < 0 ? ", more than chance explains" : ", which may be due to chance") : "";
  return `Success is ${differs} ${b} ${side ? "than" : "as"} ${a}${side ? chance : ""}: ${many(figures.gained, "problem")} gained, ${count(figures.lost)} lost.`;
}

function columns(a: string, b: string): TableColumn<CompareRow>[] {
  const side = (name: "a" | "b", label: string, rank: number): TableColumn<CompareRow> => ({
    name,
    label,
    title: `Share of correct answers, ${label}`,
    width: 120,
    align: "right",
    sortable: true,
    rank,
    cell: (row) => <Share side={row[name]} />,
  });
  return [
    { name: "problem_id", label: "Problem", width: 110, grow: true, sortable: true, rank: 0, cell: (row) => row.problem_id || "(no name)" },
    { name: "question", label: "Question", width: 220, grow: true, rank: 4, cell: (row) => row.question },
    side("a", a, 1),
    side("b", b, 1),
    { name: "difference", label: "Difference", width: 208, sortable: true, rank: 0, cell: (row) => <Change value={row.difference} /> },
    { name: "errors", label: "Failed calls", title: "Share of failed calls, first → second", width: 136, align: "right", rank: 6, cell: (row) => `${percent(row.a.tool_error_share)} → ${percent(row.b.tool_error_share)}` },
    { name: "tokens", label: "Tokens", title: "Tokens per episode, first → second", width: 116, align: "right", rank: 7, cell: (row) => `${number(row.a.tokens)} → ${number(row.b.tokens)}` },
  ];
}

function Share({ side }: { side: Side }) {
  if (!isNumber(side.success)) return <span class="quiet">–</span>;
  return (
    <span class="number">
      {percent(side.success)} <span class="quiet">of {side.n}</span>
    </span>
  );
}

/** A difference as a bar to the left or right of zero, with a sign and a number. */
function Change({ value }: { value: number | null }) {
  if (!isNumber(value)) return <span class="quiet">–</span>;
  const part = Math.min(1, Math.abs(value)) * 30;
  return (
    <span class="bar">
      <svg width="64" height="10" aria-hidden="true">
        <line class="spark-base" x1="32" x2="32" y1="0" y2="10" />
        <rect class={value < 0 ? "change-lost" : "change-gained"} x={value < 0 ? 32 - part : 32} y="1" width={part} height="8" rx="1" />
      </svg>
      <span class="number">
        {["▼", "=", "▲"][1 + way(value)]} {signed(value, points)}
      </span>
    </span>
  );
}
