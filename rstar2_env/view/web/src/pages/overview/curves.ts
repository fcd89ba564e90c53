/* The lines of a card: smoothed metrics of runs; runs of one group become a mean with a band. */
import type { Metrics, RunRow } from "../../data/types";
import type { Metric } from "./cards";
import type { Placement } from "./x-axis";
import { visible } from "../../format";
import { href } from "../../shell/router";
import type { PlacedMark } from "../../plots/marks";
import { type Line, type Points, smooth, type Spread, spread } from "../../plots/lines";

/** Runs drawn as one line: seeds of the same configuration, or a single run. */
export interface Set {
  label: string;
  runs: string[];
}

/** Combine runs of the same group, unless each run is drawn separately. */
export function sets(rows: RunRow[], how: Spread): Set[] {
  if (how === "each") return rows.map((row) => ({ label: visible(row.name), runs: [row.run] }));
  const groups = new Map<string, RunRow[]>();
  for (const row of rows) {
    const key = row.group || row.run;
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return [...groups.values()].map((group) => ({
    label: group.length === 1 ? visible(group[0]?.name ?? "") : `${common(group.map((row) => visible(row.name)))} (${group.length} seeds)`,
    runs: group.map((row) => row.run),
  }));
}

/** Common prefix of names, without a trailing fragment such as `-seed`. */
export function common(names: string[]): string {
  let length = 0;
  const [first = "", ...rest] = names;
  while (length < first.length && rest.every((name) => name[length] === first[length])) length++;
  return first.slice(0, length).replace(/[-_./ ]*(seed|s)?[-_./ =]*$/i, "") || first;
}

export interface Drawing {
  how: Spread;
  weight: number;
}

/** Lines of metrics: one colour per metric if there is one set, else per set; the dash always identifies the metric. */
export function lines(
  metrics: Metric[],
  sets: Set[],
  values: Map<string, Metrics>,
  drawing: Drawing,
): Line[] {
  const several = sets.length > 1;
  return sets.flatMap((set, nth) =>
    metrics.flatMap(({ name, label, color }, at): Line[] => {
      const runs = set.runs.flatMap((run) => points(values.get(run), name));
      if (!runs.length) return [];
      // Few evaluations lie far apart: smoothing them by their number would show figures that were never measured.
      const weight = name.startsWith("eval/") ? 0 : drawing.weight;
      const smoothed = runs.map((run) => ({ x: run.x, y: smooth(run.y, weight) }));
      const look = {
        id: `${set.label} ${name}`,
        label: several ? (metrics.length > 1 ? `${set.label}: ${label}` : set.label) : label,
        color: several ? nth : color,
        dash: at,
      };
      const [only] = smoothed;
      if (smoothed.length === 1 && only) {
        const raw = runs[0]?.y;
        return [{ ...look, ...only, ...(weight > 0 && raw ? { raw } : {}) }];
      }
      const { x, y, low, high } = spread(smoothed, drawing.how === "deviation" ? "deviation" : "range");
      return [{ ...look, x, y, band: { low, high } }];
    }),
  );
}

/** The events of each set of runs, at their positions: in the colour of the set, if there are several. */
export function marksOf(sets: Set[], values: Map<string, Metrics>, placed: Map<string, Placement>): PlacedMark[] {
  return sets.flatMap(({ label, runs }, color) => {
    const found = new Map<number, string[]>();
    for (const run of runs) {
      for (const { x, events } of placed.get(run)?.marks(values.get(run)?.marks ?? []) ?? []) {
        const known = found.get(x) ?? [];
        found.set(x, [...known, ...events.filter((event) => !known.includes(event))]);
      }
    }
    return [...found].map(([x, events]) => ({ x, events, ...(sets.length > 1 ? { label, color } : {}) }));
  });
}

/** Steps and values of a metric of a run. */
export function points(metrics: Metrics | null | undefined, name: string): Points[] {
  const series = metrics?.series[name];
  if (!metrics || !series?.some((value) => value !== null)) return [];
  const x: number[] = [];
  const y: (number | null)[] = [];
  series.forEach((value, at) => {
    const step = metrics.steps[at];
    if (value === null || step === undefined) return;
    x.push(step);
    y.push(value);
  });
  return [{ x, y }];
}

/** Address of the episodes at a position on the x axis, for a card of one run: of training, unless only evaluations have values there. */
export function episodesAt(
  sets: Set[],
  metrics: Metric[],
  values: Map<string, Metrics>,
  placed: Map<string, Placement>,
): ((x: number) => string) | undefined {
  const [run, ...more] = sets.flatMap((set) => set.runs);
  if (run === undefined || more.length) return undefined;
  const found = metrics.flatMap(({ name }) => points(values.get(run), name).map(({ x }) => ({ name, x })));
  return (at) => {
    const here = found.filter(({ x }) => x.includes(at));
    const held = here.length > 0 && here.every(({ name }) => name.startsWith("eval/"));
    return href(["runs", run, "episodes"], { split: held ? "eval" : "train", step: placed.get(run)?.step(at) ?? at });
  };
}
