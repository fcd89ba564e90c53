/* Statuses of calls and ends of episodes by step, counted from the episodes: one card per run. */
import { useMemo } from "preact/hooks";
import type { RunRow, Statuses } from "../../data/types";
import { percent } from "../../format";
import type { Axes } from "../../plots/canvas";
import { type Line, shares } from "../../plots/lines";
import { AFTER_ERROR } from "../episodes/words";
import { PlotCard } from "../../plots/plot-card";
import { href, setQuery } from "../../shell/router";

/** Fixed order, so that a name has the same colour and pattern in every run. */
const ORDER = {
  statuses: ["ok", "empty", "exception", "syntax_error", "malformed", "timeout", "invalid_arguments", "unknown_tool", "output_limit", "memory", "blocked", "unavailable"],
  after_errors: ["ok", "failed", "answered", "ended"],
  ends: ["answered", "no_answer", "turns", "tokens", "time", "unavailable", "cancelled", "terminated", "truncated"],
};

type Kind = keyof typeof WORDS;

const WORDS = {
  statuses: { title: "Statuses of calls", help: "Shares of all calls in the episodes of a step." },
  after_errors: { title: "After a failed call", help: "What followed the first failed call of an episode, as shares of the episodes with one." },
  ends: { title: "How episodes ended", help: "Shares of all episodes of a step." },
};

const MOST_RUNS = 6;

export function StatusCards({
  rows,
  values,
  kind,
  axes,
}: {
  rows: RunRow[];
  values: Map<string, Statuses> | null;
  kind: Kind;
  axes: Axes;
}) {
  if (!values) return null;
  return (
    <>
      {rows.slice(0, MOST_RUNS).map((row) => {
        const value = values.get(row.run);
        return value ? <StatusCard key={row.run} row={row} value={value} kind={kind} axes={axes} several={rows.length > 1} /> : null;
      })}
    </>
  );
}

function StatusCard({
  row,
  value,
  kind,
  axes,
  several,
}: {
  row: RunRow;
  value: Statuses;
  kind: Kind;
  axes: Axes;
  several: boolean;
}) {
  const lines = useMemo(() => parts(value.steps, value[kind], ORDER[kind], kind === "after_errors" ? AFTER_ERROR : {}), [value, kind]);
  if (!lines.length || !value.steps.length) return null;
  const { title, help } = WORDS[kind];
  return (
    <PlotCard
      title={several ? `${title}: ${row.name}` : title}
      help={help}
      lines={lines}
      stack
      axes={{ ...axes, logY: false }}
      form={percent}
      onZoom={(from, to) => setQuery({ from, to })}
      linkOf={(step) => href(["runs", row.run, "episodes"], { split: "train", step })}
    />
  );
}

function parts(steps: number[], counts: Record<string, number[]>, order: string[], words: Record<string, string>): Line[] {
  const names = Object.keys(counts).sort((a, b) => place(order, a) - place(order, b) || a.localeCompare(b));
  const columns = shares(names.map((name) => counts[name] ?? []));
  return names.map((name, at) => ({
    id: name,
    label: words[name] ?? name,
    color: place(order, name),
    dash: 0,
    x: steps,
    y: columns[at] ?? [],
  }));
}

function place(order: string[], name: string): number {
  const at = order.indexOf(name);
  return at < 0 ? order.length : at;
}
