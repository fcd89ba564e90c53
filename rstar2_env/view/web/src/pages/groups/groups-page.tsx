/* The groups of a run, with their episodes and the selection for training. */
import { path } from "../../data/address";
import { useLoad } from "../../data/hooks";
import type { GroupRow } from "../../data/group-types";
import type { RunDetail, Statuses } from "../../data/types";
import { count, percent } from "../../format";
import { href, setQuery } from "../../shell/router";
import { Chip } from "../../ui/chip";
import { Choose, TextField } from "../../ui/fields";
import { Table, type TableColumn } from "../../ui/table";
import { useWindowed } from "../../ui/windowed";
import type { PageProps } from "../types";
import { RunFrame } from "../run-frame";
import { Marks, MarksLegend } from "./marks";
import { SelectorCard } from "./selector-card";
import { REASONS } from "../../words";

const FILTERS = ["step", "q", "rejected", "round", "problem"] as const;

export function GroupsPage({ values, query }: PageProps) {
  return (
    <RunFrame run={values["run"] ?? ""} tab="groups">
      {(detail) => <Groups detail={detail} query={query} />}
    </RunFrame>
  );
}

function Groups({ detail, query }: { detail: RunDetail; query: Record<string, string> }) {
  const { run } = detail;
  const asked: Record<string, string> = { split: "train", sort: query["sort"] ?? "" };
  for (const name of FILTERS) if (query[name]) asked[name] = query[name];
  const rows = useWindowed<GroupRow>(path("runs", run, "groups"), asked, run);
  const statuses = useLoad<Statuses>(path("runs", run, "statuses"), { split: "train" }, run).value;
  const reasons = Object.keys(statuses?.reasons ?? {}).filter(Boolean);
  const rounds = [...new Set([...Object.keys(statuses?.rounds ?? {}), query["round"] ?? "0"])].sort((a, b) => Number(a) - Number(b));
  return (
    <>
      <SelectorCard part={detail.recipe_parts?.["selector"]} reasons={reasons} />
      <form class="toolbar" role="search" aria-label="Filter groups" onSubmit={(event) => event.preventDefault()}>
        <TextField label="Problem" type="search" wide value={query["q"] ?? ""} placeholder="text or id" onChange={(q) => setQuery({ q })} />
        <TextField label="Step" value={query["step"] ?? ""} placeholder="7 or 3-9" onChange={(step) => setQuery({ step })} />
        <Choose
          label="Groups"
          value={query["rejected"] ?? ""}
          options={[
            { value: "", label: "all" },
            { value: "0", label: "kept" },
            { value: "1", label: "rejected" },
          ]}
          onChange={(rejected) => setQuery({ rejected })}
        />
        <Choose
          label="Round"
          value={query["round"] ?? ""}
          options={[{ value: "", label: "all" }, ...rounds.map((value) => ({ value, label: value === "0" ? "first" : `refill ${value}` }))]}
          onChange={(round) => setQuery({ round })}
        />
        {query["problem"] && (
          <button type="button" class="button" onClick={() => setQuery({ problem: null })}>
            Only {query["problem"]}: show all
          </button>
        )}
        <p class="quiet toolbar-hint" role="status">
          {rows.total === null ? "…" : `${count(rows.total)} groups`}
        </p>
      </form>
      <MarksLegend />
      <Table
        label="Groups"
        name="groups"
        rows={rows}
        columns={COLUMNS}
        rowKey={(row) => `${row.step}/${row.round}/${row.group}`}
        to={(row) => href(["runs", run, "groups", row.step, row.group], { round: row.round || undefined })}
        sort={query["sort"] ?? ""}
        onSort={(sort) => setQuery({ sort })}
        empty="No groups match these filters: change or remove one."
        rowClass={(row) => (row.rejected ? "dropped" : "")}
      />
    </>
  );
}

const COLUMNS: TableColumn<GroupRow>[] = [
  { name: "step", label: "Step", width: 64, align: "right", sortable: true, rank: 0, cell: (row) => count(row.step) },
  { name: "group", label: "Group", width: 66, align: "right", sortable: true, rank: 5, cell: (row) => count(row.group) },
  { name: "marks", label: "Episodes", width: 216, rank: 0, cell: (row) => <Marks marks={row.marks} /> },
  {
    name: "success",
    label: "Success",
    title: "Share of correct answers among all counted episodes",
    width: 76,
    align: "right",
    sortable: true,
    rank: 2,
    cell: (row) => percent(row.success),
  },
  {
    name: "kept",
    label: "Kept",
    title: "Number of episodes kept for training, of all played",
    width: 82,
    align: "right",
    sortable: true,
    rank: 3,
    cell: (row) => `${count(row.kept)} of ${count(row.played)}`,
  },
  {
    name: "tool_error_share",
    label: "Failed calls",
    title: "Share of failed calls, in all episodes → in kept episodes",
    width: 132,
    align: "right",
    sortable: true,
    rank: 6,
    cell: (row) => (row.rejected ? percent(row.tool_error_share) : `${percent(row.tool_error_share)} → ${percent(row.kept_tool_error_share)}`),
  },
  { name: "round", label: "Round", title: "Round in which the group was played: the first one of the step, or a refill after rejected groups", width: 76, align: "right", sortable: true, rank: 7, cell: (row) => (row.round ? `refill ${row.round}` : "first") },
  { name: "reasons", label: "Drop reasons", title: "Reasons for dropped episodes, with their numbers", width: 190, grow: true, rank: 4, cell: (row) => <Reasons row={row} /> },
  { name: "problem_id", label: "Problem", width: 160, grow: true, sortable: true, rank: 8, cell: (row) => row.question || row.problem_id },
];

function Reasons({ row }: { row: GroupRow }) {
  const reasons = Object.entries(row.reasons).filter(([reason]) => reason);
  return (
    <span class="chips no-wrap">
      {row.rejected && <Chip tone="warn">rejected</Chip>}
      {reasons.map(([reason, number]) => (
        <Chip key={reason} title={REASONS[reason] ?? ""}>
          {reason} {number}
        </Chip>
      ))}
    </span>
  );
}
