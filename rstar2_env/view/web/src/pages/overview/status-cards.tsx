/* Statuses of calls and ends of episodes by step, counted from the episodes: one card per run. */
import { useMemo } from "preact/hooks";
import type { RunRow, Statuses } from "../../data/types";
import { percent } from "../../format";
import type { Axes } from "../../plots/canvas";
import { type Line, shares } from "../../plots/lines";
import { PlotCard } from "../../plots/plot-card";
import { setQuery } from "../../shell/router";

/** Fixed order, so that a name has the same colour and pattern in every run. */
const ORDER = {
  statuses: ["ok", "empty", "exception", "syntax_error", "malformed", "timeout", "invalid_arguments", "unknown_tool", "output_limit", "memory", "blocked", "unavailable"],
  ends: ["answered", "no_answer", "turns", "tokens", "time", "unavailable", "cancelled", "terminated", "truncated"],
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
  kind: "statuses" | "ends";
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
  kind: "statuses" | "ends";
  axes: Axes;
  several: boolean;
}) {
  const lines = useMemo(() => parts(value.steps, value[kind], ORDER[kind]), [value, kind]);
  if (!lines.length || !value.steps.length) return null;
  const title = kind === "statuses" ? "Statuses of calls" : "How episodes ended";
  return (
    <PlotCard
      title={several ? `${title}: ${row.name}` : title}
      help={kind === "statuses" ? "Shares of all calls in the episodes of a step." : "Shares of all episodes of a step."}
      lines={lines}
      stack
      axes={{ ...axes, logY: false }}
      form={percent}
      onZoom={(from, to) => setQuery({ from, to })}
    />
  );
}

function parts(steps: number[], counts: Record<string, number[]>, order: string[]): Line[] {
  const names = Object.keys(counts).sort((a, b) => place(order, a) - place(order, b) || a.localeCompare(b));
  const columns = shares(names.map((name) => counts[name] ?? []));
  return names.map((name, at) => ({
    id: name,
    label: name,
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
