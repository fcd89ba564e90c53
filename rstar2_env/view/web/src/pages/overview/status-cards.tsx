/* Statuses of calls and ends of episodes by step, counted from the episodes: one card per run. */
import { useMemo } from "preact/hooks";
import type { RunRow, Statuses } from "../../data/types";
import { percent, visible } from "../../format";
import type { Axes } from "../../plots/canvas";
import { afterError } from "../../words";
import { PlotCard } from "../../plots/plot-card";
import { href, setQuery } from "../../shell/router";
import { failures, ORDER, parts } from "./statuses";
import type { Placement, XKind } from "./x-axis";

type Kind = keyof typeof WORDS;

const WORDS = {
  errors: { title: "Failed calls by status", help: "Failed calls of each status, as shares of all calls of a step except unavailable ones; the most frequent status first." },
  statuses: { title: "Statuses of calls", help: "Shares of all calls in the episodes of a step." },
  after_errors: { title: "After a failed call", help: "What followed an episode's first failed call, as shares of the episodes with a failed call." },
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
      if (kind === "errors") return failures(x, value.statuses);
      return parts(x, value[kind], ORDER[kind], kind === "after_errors" ? afterError : visible);
    },
    [value, kind, place],
  );
  if (!lines.length || !value.steps.length) return null;
  const { title, help } = WORDS[kind];
  return (
    <PlotCard
      title={several ? `${title}: ${visible(row.name)}` : title}
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
