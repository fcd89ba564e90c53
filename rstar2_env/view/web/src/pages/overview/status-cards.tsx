/* Statuses of calls and ends of episodes by step, counted from the episodes: one card per run. */
import { useMemo } from "preact/hooks";
import { errors } from "../../data/rows";
import type { RunRow, Statuses } from "../../data/types";
import { percent } from "../../format";
import type { Axes } from "../../plots/canvas";
import { type Line, shares } from "../../plots/lines";
import { AFTER_ERROR } from "../../words";
import { PlotCard } from "../../plots/plot-card";
import { href, setQuery } from "../../shell/router";
import type { Placement, XKind } from "./x-axis";

/** Fixed order, so that a name has the same colour and pattern in every run. */
const ORDER = {
  statuses: ["ok", "empty", "exception", "syntax_error", "malformed", "timeout", "invalid_arguments", "unknown_tool", "output_limit", "memory", "blocked", "unavailable"],
  after_errors: ["ok", "failed", "answered", "ended"],
  ends: ["answered", "no_answer", "turns", "tokens", "time", "unavailable", "cancelled", "terminated", "truncated"],
};

type Kind = keyof typeof WORDS;

const WORDS = {
  errors: { title: "Failed calls by status", help: "Shares of all calls in the episodes of a step; the most frequent status first." },
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
  placed,
  x,
}: {
  rows: RunRow[];
  values: Map<string, Statuses> | null;
  kind: Kind;
  axes: Axes;
  placed: Map<string, Placement>;
  x: XKind;
}) {
  if (!values) return null;
  return (
    <>
      {rows.slice(0, MOST_RUNS).map((row) => {
        const [value, place] = [values.get(row.run), placed.get(row.run)];
        if (!value || !place) return null;
        return <StatusCard key={row.run} row={row} value={value} kind={kind} axes={axes} several={rows.length > 1} place={place} x={x} />;
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
  place,
  x,
}: {
  row: RunRow;
  value: Statuses;
  kind: Kind;
  axes: Axes;
  several: boolean;
  place: Placement;
  x: XKind;
}) {
  const lines = useMemo(
    () => {
      const x = value.steps.map((step) => place.x(step));
      if (kind === "errors") return failures(parts(x, value.statuses, ORDER.statuses, {}), value.statuses);
      return parts(x, value[kind], ORDER[kind], kind === "after_errors" ? AFTER_ERROR : {});
    },
    [value, kind, place],
  );
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
      unit={x.unit}
      formX={x.form}
      linkOf={(at) => href(["runs", row.run, "episodes"], { split: "train", step: place.step(at), ...(kind === "errors" ? { status: "error" } : {}) })}
    />
  );
}

function parts(x: number[], counts: Record<string, number[]>, order: string[], words: Record<string, string>): Line[] {
  const names = Object.keys(counts).sort((a, b) => rank(order, a) - rank(order, b) || a.localeCompare(b));
  const columns = shares(names.map((name) => counts[name] ?? []));
  return names.map((name, at) => ({
    id: name,
    label: words[name] ?? name,
    color: rank(order, name),
    dash: 0,
    x,
    y: columns[at] ?? [],
  }));
}

/** The lines of failed calls alone, the most frequent status first. */
function failures(lines: Line[], counts: Record<string, number[]>): Line[] {
  const total = (line: Line) => errors({ [line.id]: (counts[line.id] ?? []).reduce((sum, one) => sum + one, 0) });
  return lines.filter((line) => total(line) > 0).sort((a, b) => total(b) - total(a));
}

function rank(order: string[], name: string): number {
  const at = order.indexOf(name);
  return at < 0 ? order.length : at;
}
