/* Columns of the table of episodes; columns with a high rank are hidden first if space is short, and columns without a
   rank are shown only if they are chosen. The values are the fields of `view/queries/filters.py`; docs/architecture.md lists every file that a new column changes. */
import type { EpisodeRow } from "../../data/types";
import { count, number, seconds, signed, visible } from "../../format";
import { Chip, CorrectChip, endTone, KeptChip, StatusChips, statusTone } from "../../ui/chip";
import type { TableColumn } from "../../ui/table";
import { afterError, COLUMNS } from "../../words";

const COUNTED = {
  step: "Training step",
  group: "Number of the group in its step",
  member: "Number of the episode in its group",
  round: "0 for the first round of a step, then the number of the refill",
  calls: "Number of tool calls",
  version: "Version of the weights that played the episode",
};

const ALL: TableColumn<EpisodeRow>[] = [
  {
    name: "key",
    label: COLUMNS.key,
    title: "Split, step and number of the line in its file",
    width: 122,
    sortable: true,
    rank: 0,
    cell: (row) => <span class="number">{row.key}</span>,
  },
  { name: "correct", label: COLUMNS.correct, width: 84, sortable: true, rank: 0, cell: (row) => <CorrectChip correct={row.correct} /> },
  {
    name: "question",
    label: COLUMNS.question,
    width: 130,
    wish: 320,
    grow: true,
    rank: 0,
    cell: (row) => <span title={row.problem_id}>{visible(row.question || row.problem_id)}</span>,
  },
  { name: "reward", label: COLUMNS.reward, width: 72, align: "right", sortable: true, rank: 1, cell: (row) => number(row.reward) },
  {
    name: "errors",
    label: COLUMNS.errors,
    title: "Statuses of the calls; sorted by the number of errors",
    width: 200,
    grow: true,
    sortable: true,
    rank: 2,
    cell: (row) => <StatusChips counts={row.statuses} injected={row.injected} />,
  },
  {
    name: "kept",
    label: COLUMNS.kept,
    title: "Whether the episode is used for training, or the reason why not",
    width: 138,
    sortable: true,
    rank: 3,
    cell: (row) => <KeptChip kept={row.kept} reason={row.reason} />,
  },
  { name: "end", label: COLUMNS.end, title: "How the episode ended", width: 112, sortable: true, rank: 4, cell: (row) => row.end && <Chip tone={endTone(row.end)} sign="">{row.end}</Chip> },
  { name: "policy_tokens", label: COLUMNS.policy_tokens, title: "Tokens that the policy generated", width: 74, align: "right", sortable: true, rank: 5, cell: (row) => count(row.policy_tokens) },
  { name: "turns", label: COLUMNS.turns, title: "Turns of the policy", width: 66, align: "right", sortable: true, rank: 6, cell: (row) => count(row.turns) },
  { name: "advantage", label: COLUMNS.advantage, title: "Weight of the episode in the gradient", width: 92, align: "right", sortable: true, rank: 7, cell: (row) => signed(row.advantage) },
  { name: "problem_id", label: COLUMNS.problem_id, width: 190, sortable: true, rank: 8, cell: (row) => <span class="mono">{visible(row.problem_id)}</span> },
  { name: "task", label: COLUMNS.task, width: 150, rank: 9, cell: (row) => visible(row.task) },
  { name: "seconds", label: COLUMNS.seconds, width: 80, align: "right", sortable: true, rank: 10, cell: (row) => seconds(row.seconds) },
  { name: "split", label: COLUMNS.split, width: 84, sortable: true, cell: (row) => (row.split === "eval" ? "held out" : "training") },
  ...counts("step", "group", "member", "round", "calls"),
  { name: "last_status", label: COLUMNS.last_status, title: "Status of the last call", width: 130, sortable: true, cell: (row) => row.last_status && <Chip tone={statusTone(row.last_status)}>{visible(row.last_status)}</Chip> },
  { name: "after_error", label: COLUMNS.after_error, title: "What followed the first failed call", width: 170, sortable: true, cell: (row) => afterError(row.after_error) },
  { name: "answer", label: COLUMNS.answer, width: 150, sortable: true, cell: (row) => <span class="mono">{visible(row.answer ?? "")}</span> },
  { name: "difficulty", label: COLUMNS.difficulty, width: 100, sortable: true, cell: (row) => visible(row.difficulty ?? "") },
  { name: "source", label: COLUMNS.source, width: 120, sortable: true, cell: (row) => visible(row.source) },
  { name: "problem_source", label: COLUMNS.problem_source, width: 120, sortable: true, cell: (row) => visible(row.problem_source) },
  ...counts("version"),
];

function counts(...names: (keyof typeof COUNTED)[]): TableColumn<EpisodeRow>[] {
  return names.map((name) => ({ name, label: COLUMNS[name], title: COUNTED[name], width: name === "calls" ? 134 : 82, align: "right", sortable: true, cell: (row) => count(row[name]) }));
}

/** Columns that are not empty in this run. */
export function columnsOf(names: Set<string>): TableColumn<EpisodeRow>[] {
  const always = new Set(["key", "question", "reward", "correct", "answer", "round"]);
  return ALL.filter((column) => always.has(column.name) || !names.size || names.has(column.name) || (column.name === "errors" && names.has("statuses")));
}
