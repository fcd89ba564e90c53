/* The problems of a run with their success rates. */
import { path } from "../../data/address";
import type { ProblemRow } from "../../data/group-types";
import type { RunDetail } from "../../data/types";
import { count, number, percent } from "../../format";
import { href, setQuery } from "../../shell/router";
import { Choose, TextField } from "../../ui/fields";
import { Table, type TableColumn } from "../../ui/table";
import { useWindowed } from "../../ui/windowed";
import type { PageProps } from "../types";
import { CompareSteps } from "../compare/compare-steps";
import { occurring } from "../episodes/filters";
import { RunFrame } from "../run-frame";
import { Bar, Spark } from "./bar";

const BANDS: Record<string, { label: string; min?: string; max?: string }> = {
  "": { label: "any" },
  never: { label: "never", max: "0" },
  sometimes: { label: "sometimes", min: "0.000001", max: "0.999999" },
  always: { label: "always", min: "1" },
};

export function ProblemsPage({ values, query }: PageProps) {
  return (
    <RunFrame run={values["run"] ?? ""} tab="problems">
      {(detail) => <Problems detail={detail} query={query} />}
    </RunFrame>
  );
}

function Problems({ detail, query }: { detail: RunDetail; query: Record<string, string> }) {
  const { run, episodes } = detail;
  const split = query["split"] ?? (episodes.train > 0 ? "train" : "eval");
  const band = BANDS[query["solved"] ?? ""];
  const asked = { split, q: query["q"] ?? "", task: query["task"] ?? "", sort: query["sort"] ?? "success", min_success: band?.min ?? "", max_success: band?.max ?? "" };
  const rows = useWindowed<ProblemRow>(path("runs", run, "problems"), asked, run);
  const tasks = occurring(detail.columns.find((column) => column.name === "task")?.values ?? [], split, query["task"]);
  return (
    <>
      <form class="toolbar" role="search" aria-label="Filter problems" onSubmit={(event) => event.preventDefault()}>
        <TextField label="Problem" type="search" wide value={query["q"] ?? ""} placeholder="text or id" onChange={(q) => setQuery({ q })} />
        {episodes.train > 0 && episodes.eval > 0 && (
          <Choose
            label="Split"
            value={split}
            options={[
              { value: "train", label: "training" },
              { value: "eval", label: "held out" },
            ]}
            onChange={(value) => setQuery({ split: value })}
          />
        )}
        <Choose label="Solved" value={query["solved"] ?? ""} options={Object.entries(BANDS).map(([value, one]) => ({ value, label: one.label }))} onChange={(solved) => setQuery({ solved })} />
        {tasks.length > 1 && (
          <Choose
            label="Task"
            value={query["task"] ?? ""}
            options={[{ value: "", label: "all" }, ...tasks.map(({ value }) => ({ value, label: value }))]}
            onChange={(task) => setQuery({ task })}
          />
        )}
        <p class="quiet toolbar-hint" role="status">
          {rows.total === null ? "…" : `${count(rows.total)} problems`}
        </p>
        <CompareSteps run={run} split={split} />
      </form>
      <Table
        label="Problems"
        name="problems"
        rows={rows}
        columns={COLUMNS}
        rowKey={(row) => row.problem_id}
        to={(row) => href(["runs", run, "problems", row.problem_id], { split })}
        sort={asked.sort}
        onSort={(sort) => setQuery({ sort })}
        empty="No problems match these filters: change or remove one."
      />
    </>
  );
}

const COLUMNS: TableColumn<ProblemRow>[] = [
  { name: "problem_id", label: "Problem", width: 120, grow: true, sortable: true, rank: 0, cell: (row) => row.problem_id || "(no name)" },
  { name: "question", label: "Question", width: 240, grow: true, rank: 5, cell: (row) => row.question },
  { name: "trend", label: "Over time", title: "Share of correct answers in the last steps in which the problem was played", width: 128, rank: 1, cell: (row) => <Spark values={row.trend} /> },
  { name: "success", label: "Success", title: "Share of correct answers", width: 130, sortable: true, rank: 0, cell: (row) => <Bar share={row.success} /> },
  { name: "seen", label: "Episodes", width: 84, align: "right", sortable: true, rank: 3, cell: (row) => count(row.seen) },
  { name: "tool_error_share", label: "Failed calls", title: "Share of failed calls", width: 96, align: "right", sortable: true, rank: 6, cell: (row) => percent(row.tool_error_share) },
  { name: "tokens", label: "Tokens", title: "Policy tokens per episode", width: 76, align: "right", sortable: true, rank: 7, cell: (row) => number(row.tokens) },
  { name: "task", label: "Task", width: 110, rank: 4, cell: (row) => row.task },
  { name: "last_step", label: "Last step", title: "Last step in which the problem was played", width: 84, align: "right", sortable: true, rank: 8, cell: (row) => count(row.last_step) },
];
