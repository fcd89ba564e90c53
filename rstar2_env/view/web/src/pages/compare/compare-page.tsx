/* Comparison of two runs by problem: paired difference, gained and lost problems, links to both episodes. */
import { useEffect, useState } from "preact/hooks";
import { path } from "../../data/address";
import { useDataContext, useLoad } from "../../data/hooks";
import type { ComparePage as Answer, CompareRow, Side } from "../../data/group-types";
import type { RunRow, Runs, Statuses } from "../../data/types";
import { count, isNumber, many, number, percent, points, signed, way } from "../../format";
import { useKnownRuns } from "../../shell/known-runs";
import { href, setQuery } from "../../shell/router";
import { Choose, TextField } from "../../ui/fields";
import { LinkButton } from "../../ui/link-button";
import { Empty, Notes, Shown } from "../../ui/states";
import { Table, type TableColumn } from "../../ui/table";
import { useWindowed } from "../../ui/windowed";
import { DifferenceTable } from "../overview/difference";
import type { PageProps } from "../types";
import { Figure } from "../../ui/figure";
import { endsOf, heldSteps } from "./compare-steps";
import { type Compared, DEFAULT_STEPS, noneIn, nothingShared, placesOf, type Sides, stepOptions, swappedSides, wholeLabel, whenOf } from "./sides";

export function ComparePage({ query }: PageProps) {
  const load = useLoad<Runs>(path("runs"));
  const [compared, setCompared] = useState<Compared | null>(null);
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
            <Choice runs={known} a={query["a"] ?? ""} b={query["b"] ?? ""} swapped={swappedSides(query, compared)} />
            {a && b ? <ComparedRuns a={a} b={b} query={query} onCompared={setCompared} /> : <Empty title="Choose two runs">Problems that occur in both runs are compared.</Empty>}
          </>
        );
      }}
    </Shown>
  );
}

function Choice({ runs, a, b, swapped }: { runs: RunRow[]; a: string; b: string; swapped: Record<string, string> | null }) {
  const options = [{ value: "", label: "Choose…" }, ...runs.map((row) => ({ value: row.run, label: row.name }))];
  return (
    <div class="toolbar compare-choice">
      <Choose label="First run" value={a} options={options} onChange={(run) => setQuery({ a: run, ...DEFAULT_STEPS })} />
      <button type="button" class="button" onClick={() => swapped && setQuery(swapped)} disabled={!swapped}>
        <span aria-hidden="true">⇄</span> Swap
      </button>
      <Choose label="Second run" value={b} options={options} onChange={(run) => setQuery({ b: run, ...DEFAULT_STEPS })} />
    </div>
  );
}

const SPLITS = ["eval", "train"] as const;

interface TwoRuns {
  a: RunRow;
  b: RunRow;
  query: Record<string, string>;
  /** Called with the sides that are shown. */
  onCompared: (sides: Compared) => void;
}

function ComparedRuns(props: TwoRuns) {
  const { a, b, query } = props;
  const { source } = useDataContext();
  if (source.exported && a.run === b.run) return <HeldSteps {...props} />;
  const splits = SPLITS.filter((split) => a.episodes[split] > 0 && b.episodes[split] > 0);
  return <KnownSteps {...props} splits={splits} split={splits.find((split) => split === query["split"]) ?? splits[0] ?? "eval"} />;
}

/** Two sides with the steps of each; by default, two steps of one run are the first and the last. */
function KnownSteps(props: TwoRuns & { splits: string[]; split: string }) {
  const { a, b, query, split } = props;
  const { source } = useDataContext();
  const loads = [useLoad<Statuses>(path("runs", a.run, "statuses"), { split }), useLoad<Statuses>(path("runs", b.run, "statuses"), { split })] as const;
  const asked = { a_step: query["a_step"] ?? "", b_step: query["b_step"] ?? "" };
  return (
    <Shown load={loads[0]} what="Reading the steps">
      {({ steps: ofA }) => (
        <Shown load={loads[1]} what="Reading the steps">
          {({ steps: ofB }) => {
            const ends = a.run === b.run && !asked.a_step && !asked.b_step ? endsOf(ofA) : null;
            // An export contains one comparison of two runs, over their default steps.
            const steps = source.exported ? { a_step: "", b_step: "" } : (ends ?? asked);
            return <Comparison {...props} steps={steps} known={[ofA, ofB]} />;
          }}
        </Shown>
      )}
    </Shown>
  );
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
            const found = heldSteps({ eval: heldOut, train: training }, props.query);
            if (!found) return <Empty title="Choose two runs">The exported page contains no two steps of this run to compare.</Empty>;
            const known = found.split === "eval" ? heldOut : training;
            return <Comparison {...props} {...found} known={[known, known]} />;
          }}
        </Shown>
      )}
    </Shown>
  );
}

interface ComparisonProps extends TwoRuns, Sides {
  query: Record<string, string>;
  /** The splits that can be compared. */
  splits: string[];
  /** The asked steps. */
  steps: { a_step: string; b_step: string };
}

function Comparison({ query, splits, steps, onCompared, ...both }: ComparisonProps) {
  const { a, b, split, known } = both;
  const { source } = useDataContext();
  useEffect(() => onCompared({ a: a.run, b: b.run, ...steps }), [a.run, b.run, steps.a_step, steps.b_step]);
  const asked = { a: a.run, b: b.run, split, ...steps, q: query["q"] ?? "", change: query["change"] ?? "", sort: query["sort"] ?? "difference" };
  const one = a.run === b.run;
  const filtered = asked.q !== "" || asked.change !== "";
  const rows = useWindowed<CompareRow>("api/compare", asked);
  const load = useLoad<Answer>("api/compare", { a: a.run, b: b.run, split, ...steps, limit: 1 });
  const when = whenOf(both, load.value?.steps ?? [steps.a_step, steps.b_step].map((step) => (step ? Number(step) : null)));
  const names: [string, string] = one ? when : [a.name, b.name];
  const choice = (label: string, which: 0 | 1) => {
    const name = which ? "b_step" : "a_step";
    // An export compares only the steps that it contains.
    if (source.exported || (known[which].length < 2 && !steps[name])) return null;
    return <Choose label={label} value={steps[name]} options={stepOptions(known[which], steps[name], split, wholeLabel(both))} onChange={(step) => setQuery({ ...steps, [name]: step })} />;
  };
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
            onChange={(value) => setQuery({ split: value, ...DEFAULT_STEPS })}
          />
        )}
        {choice(one ? "First step" : "Step of the first run", 0)}
        {choice(one ? "Second step" : "Step of the second run", 1)}
      </div>
      {one && steps.a_step === steps.b_step && <Notes notes={["The two sides are the same: choose two steps, or another run."]} />}
      <Shown load={load} what="Comparing">
        {(answer) =>
          answer.figures.problems ? (
            <Figures answer={answer} names={names} notes={one ? ["", ""] : when} places={placesOf(both, when)} />
          ) : (
            <NothingShared {...nothingShared(both, answer.steps, answer.total)} query={query} />
          )
        }
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
      <Notes notes={load.value ? cautions(load.value.figures) : []} />
      <Table
        label="Problems that occur in both runs"
        name="compare"
        rows={rows}
        columns={columns(...names)}
        rowKey={(row) => row.problem_id}
        to={(row) => href(["pair"], { a: `${a.run}/${row.a.keys[0] ?? ""}`, b: `${b.run}/${row.b.keys[0] ?? ""}` })}
        sort={asked.sort}
        onSort={(sort) => setQuery({ sort })}
        empty={filtered ? "No shared problems match these filters: change or remove one." : noneIn(one)}
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

/** In place of figures: why there are none, and links to comparisons that may have some. */
function NothingShared({ says, ways, query }: ReturnType<typeof nothingShared> & { query: Record<string, string> }) {
  return (
    <>
      <p class="in-words">{says}</p>
      {ways.length > 0 && (
        <p class="toolbar">
          {ways.map((one) => (
            <LinkButton key={one.label} to={href(["compare"], { ...query, ...one.query })}>
              {one.label}
            </LinkButton>
          ))}
        </p>
      )}
    </>
  );
}

interface FiguresProps {
  answer: Answer;
  names: [string, string];
  /** Notes below the figures of both sides: their steps, unless the names contain them. */
  notes: [string, string];
  /** The names in a sentence: in a run, or after a step of the one run that is compared with itself. */
  places: [string, string];
}

function Figures({ answer, names, notes, places }: FiguresProps) {
  const { figures } = answer;
  const surely = isNumber(figures.low) && isNumber(figures.high) && (figures.low > 0 || figures.high < 0);
  const alone = figures.only_a + figures.only_b;
  return (
    <>
      <p class="in-words">{inWords(answer, places)}</p>
      <dl class="figures" aria-label="Figures of both runs">
        <Figure name={names[0]} value={percent(figures.a)} note={notes[0]} />
        <Figure name={names[1]} value={percent(figures.b)} note={notes[1]} />
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
  if (!isNumber(difference)) return "";
  const side = way(difference);
  const differs = side ? `${points(Math.abs(difference))} ${side > 0 ? "higher" : "lower"}` : "the same";
  const chance = isNumber(low) && isNumber(high) ? (low > 0 || high < 0 ? ", more than chance explains" : ", which may be due to chance") : "";
  return `Success is ${differs} ${b} ${side ? "than" : "as"} ${a}${side ? chance : ""}: ${many(figures.gained, "problem")} gained, ${count(figures.lost)} lost.`;
}

/** What to bear in mind when reading the table of problems. */
export function cautions({ single, problems, same }: Pick<Answer["figures"], "single" | "problems" | "same">): string[] {
  if (!single || same === problems) return [];
  if (single === problems) return ["Problems with only one sample on a side may be gained or lost by chance: judge by the difference over all problems."];
  return [`${count(single)} of ${many(problems, "problem")} ${single === 1 ? "has" : "have"} one sample on a side and may be gained or lost by chance.`];
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
