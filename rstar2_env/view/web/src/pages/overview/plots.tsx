/* The tool bar and the plot cards of one run or several. */
import { useMemo, useState } from "preact/hooks";
import { path } from "../../data/address";
import { useLoadAll } from "../../data/hooks";
import type { Metrics, RunRow, Statuses } from "../../data/types";
import { many } from "../../format";
import type { Axes } from "../../plots/canvas";
import type { Spread } from "../../plots/lines";
import { type PlacedMark, SIGNS } from "../../plots/marks";
import { PlotCard } from "../../plots/plot-card";
import { setQuery } from "../../shell/router";
import { Choose, Switch, TextField } from "../../ui/fields";
import { Empty, Loading, Notes } from "../../ui/states";
import { type Card, CARDS, others, present, repeated } from "./cards";
import { type Drawing, episodesAt, lines, marksOf, type Set as RunSet, sets } from "./curves";
import { seedSentences } from "./seeds";
import { StatusCards } from "./status-cards";
import { Placement, positions, type XAxis, type XKind, X_AXES } from "./x-axis";

const AXES = Object.keys(X_AXES) as XAxis[];

const HOW: { value: Spread; label: string }[] = [
  { value: "range", label: "Mean and range" },
  { value: "deviation", label: "Mean ± deviation" },
  { value: "each", label: "Each run" },
];

/** If a card has more metrics than this and several runs are drawn, the user chooses one metric. */
const MOST_TOGETHER = 2;

export function Plots({ rows, query }: { rows: RunRow[]; query: Record<string, string> }) {
  const runs = rows.map((row) => row.run);
  const metrics = useLoadAll<Metrics>(runs, (run) => path("runs", run, "metrics"));
  const train = useLoadAll<Statuses>(runs, (run) => path("runs", run, "statuses"), { split: "train" });
  const axis: XAxis = Object.hasOwn(X_AXES, query["x"] ?? "") ? (query["x"] as XAxis) : "step";
  // Seeds reach a step at different times, so only steps have a mean over seeds.
  const how = axis === "step" ? ((query["seeds"] as Spread | undefined) ?? "range") : "each";
  const weight = Math.min(0.99, Math.max(0, Number(query["smooth"] ?? 0) || 0));
  const placed = useMemo(() => placements(metrics.values, axis), [metrics.values, axis]);
  const values = useMemo(
    () => new Map([...(metrics.values ?? [])].flatMap(([run, one]) => (placed.has(run) ? [[run, placed.get(run)?.metrics(one) ?? one]] : []))),
    [metrics.values, placed],
  );
  const drawn = useMemo(() => sets(rows, how), [runs.join("\n"), how]);
  const marks = useMemo(() => marksOf(drawn, values, placed), [drawn, values, placed]);
  const axes: Axes = useMemo(
    () => ({
      logX: query["logx"] === "1",
      logY: query["logy"] === "1",
      from: end(query["from"]),
      to: end(query["to"]),
      marks: query["events"] === "0" ? [] : marks,
    }),
    [query["logx"], query["logy"], query["from"], query["to"], query["events"], marks],
  );
  const names = useMemo(
    () => new Set([...(metrics.values?.values() ?? [])].flatMap((one) => Object.keys(one.series))),
    [metrics.values],
  );
  if (!metrics.values) return <Loading what="Reading the metrics" />;
  const groups = sets(rows, "range");
  const seeds = groups.length < rows.length;
  const recorded = AXES.filter((one) => one === axis || [...(metrics.values?.values() ?? [])].some((run) => positions(run, one)));
  const only = query["metric"];
  const shared = { axes, placed, x: X_AXES[axis] };
  const cards = only
    ? [...CARDS, ...others(names)].filter((card) => present(card, names).some(({ name }) => name === only))
    : CARDS.filter((card) => present(card, names).length > 0 && !repeated(card, names, [...(metrics.values?.values() ?? [])]));
  return (
    <>
      {seedSentences(groups, metrics.values).map((text) => (
        <p key={text} class="in-words">
          {text}
        </p>
      ))}
      <Tools query={query} weight={weight} how={how} seeds={seeds && axis === "step"} axis={axis} axes={recorded} marks={marks} one={rows.length === 1} />
      <Notes
        notes={[
          ...[...metrics.errors].map(([run, reason]) => `${run}: ${reason}`),
          ...[...metrics.values.keys()].filter((run) => !placed.has(run)).map((run) => `${run} is left out, because it does not record its ${X_AXES[axis].unit}: choose another horizontal axis.`),
        ]}
      />
      {only && (
        <p class="only" key={only} ref={intoView}>
          Only plots with <code>{only}</code>.{" "}
          <button type="button" class="button small" onClick={() => setQuery({ metric: null })}>
            Show all
          </button>
        </p>
      )}
      {cards.length === 0 && train.values && ![...train.values.values()].some((one) => one.steps.length) && (
        <Empty title="No metrics yet">They appear here after the first step.</Empty>
      )}
      {sections(cards).map(([section, list]) => (
        <details key={section} class="further" open>
          <summary>
            <h2>{section}</h2>
          </summary>
          <div class="plot-grid">
            {list.map((card) => (
              <MetricCard
                key={card.title}
                card={card}
                names={names}
                drawn={drawn}
                values={values}
                drawing={{ how, weight }}
                axes={axes}
                placed={placed}
                x={X_AXES[axis]}
              />
            ))}
            {section === "Tools" &&
              !only &&
              (["errors", "statuses", "after_errors"] as const).map((kind) => (
                <StatusCards key={kind} rows={rows} values={train.values} kind={kind} {...shared} />
              ))}
            {section === "Episode length and format" && !only && (
              <StatusCards rows={rows} values={train.values} kind="ends" {...shared} />
            )}
          </div>
        </details>
      ))}
      {!only && <Further names={names} drawn={drawn} values={values} drawing={{ how, weight }} {...shared} />}
    </>
  );
}

/** Scroll to the plots that a link names, which are far down on the page. */
function intoView(node: HTMLElement | null): void {
  node?.scrollIntoView({ block: "start" });
}

interface ToolsProps {
  query: Record<string, string>;
  weight: number;
  how: Spread;
  seeds: boolean;
  axis: XAxis;
  /** The x axes that can be chosen. */
  axes: XAxis[];
  marks: PlacedMark[];
  /** Whether the plots show one run, whose points lead to episodes. */
  one: boolean;
}

function Tools({ query, weight, how, seeds, axis, axes, marks, one }: ToolsProps) {
  const { counts } = X_AXES[axis];
  const zoomed = query["from"] || query["to"];
  return (
    <div class="toolbar" role="group" aria-label="Plot settings">
      <div class="field">
        <label for="smooth">Smoothing {weight > 0 ? weight.toFixed(2) : "off"}</label>
        <input
          id="smooth"
          type="range"
          min="0"
          max="0.98"
          step="0.02"
          value={weight}
          onChange={(event) => setQuery({ smooth: Number(event.currentTarget.value) || null })}
        />
      </div>
      {seeds && (
        <Choose label="Seeds" value={how} options={HOW} onChange={(value) => setQuery({ seeds: value === "range" ? null : value })} />
      )}
      {axes.length > 1 && (
        <Choose
          label="Horizontal axis"
          value={axis}
          options={axes.map((value) => ({ value, label: X_AXES[value].label }))}
          onChange={(x) => setQuery({ x: x === "step" ? null : x, from: null, to: null })}
        />
      )}
      <TextField label={`From ${counts}`} type="number" value={query["from"] ?? ""} onChange={(from) => setQuery({ from })} />
      <TextField label={`To ${counts}`} type="number" value={query["to"] ?? ""} onChange={(to) => setQuery({ to })} />
      <Switch label={`Log ${counts}s`} on={query["logx"] === "1"} onChange={(on) => setQuery({ logx: on ? 1 : null })} />
      <Switch label="Log values" on={query["logy"] === "1"} onChange={(on) => setQuery({ logy: on ? 1 : null })} />
      {marks.length > 0 && <Switch label="Events" on={query["events"] !== "0"} onChange={(on) => setQuery({ events: on ? null : 0 })} />}
      {zoomed ? (
        <button type="button" class="button" onClick={() => setQuery({ from: null, to: null })}>
          Reset zoom
        </button>
      ) : (
        <p class="quiet toolbar-hint">
          Drag over a plot to zoom all of them.{one && " Click a point to see the episodes of its step."}
        </p>
      )}
      {marks.length > 0 && query["events"] !== "0" && <MarkSigns marks={marks} />}
    </div>
  );
}

/** The signs of the events that the plots mark. */
function MarkSigns({ marks }: { marks: PlacedMark[] }) {
  const kinds = new Set(marks.flatMap(({ events }) => events));
  return (
    <p class="quiet toolbar-hint">
      {Object.entries(SIGNS)
        .filter(([kind]) => kinds.has(kind))
        .map(([kind, sign]) => `${sign} ${kind}`)
        .join("   ")}
    </p>
  );
}

function placements(values: Map<string, Metrics> | null, axis: XAxis): Map<string, Placement> {
  const found = new Map<string, Placement>();
  for (const [run, metrics] of values ?? []) {
    const place = Placement.of(metrics, axis);
    if (place) found.set(run, place);
  }
  return found;
}

interface MetricCardProps {
  card: Card;
  names: Set<string>;
  drawn: RunSet[];
  values: Map<string, Metrics>;
  drawing: Drawing;
  axes: Axes;
  placed: Map<string, Placement>;
  x: XKind;
}

function MetricCard({ card, names, drawn, values, drawing, axes, placed, x }: MetricCardProps) {
  const [chosen, setChosen] = useState("");
  const metrics = present(card, names);
  const choose = drawn.length > 1 && metrics.length > MOST_TOGETHER;
  const stack = (card.stack ?? false) && drawn.length === 1;
  const shown = choose ? metrics.filter(({ name }, at) => (chosen ? name === chosen : at === 0)) : metrics;
  const picture = useMemo(
    () => lines(shown, drawn, values, stack ? { ...drawing, weight: 0 } : drawing),
    [card.title, chosen, drawn, values, drawing.how, drawing.weight],
  );
  if (!picture.length) return null;
  return (
    <PlotCard
      title={card.title}
      {...(card.help ? { help: card.help } : {})}
      lines={picture}
      stack={stack}
      axes={stack ? { ...axes, logY: false } : axes}
      form={card.form}
      onZoom={(from, to) => setQuery({ from, to })}
      unit={x.unit}
      formX={x.form}
      linkOf={episodesAt(drawn, shown, values, placed)}
      tools={
        choose ? (
          <Choose
            label="Metric"
            value={chosen || (metrics[0]?.name ?? "")}
            options={metrics.map(({ name, label }) => ({ value: name, label }))}
            onChange={setChosen}
          />
        ) : null
      }
    />
  );
}

/** Metrics without a card of their own, in a collapsed section. */
function Further(props: Omit<MetricCardProps, "card">) {
  const [open, setOpen] = useState(false);
  const [words, setWords] = useState("");
  const cards = others(props.names);
  if (!cards.length) return null;
  const found = cards.filter((card) => card.title.toLowerCase().includes(words.toLowerCase()));
  return (
    <details class="further" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <h2>Further metrics</h2> <span class="quiet">{many(cards.length, "plot")}</span>
      </summary>
      {open && (
        <>
          <div class="toolbar">
            <TextField label="Search by name" type="search" value={words} onChange={setWords} wide />
          </div>
          <div class="plot-grid">
            {found.map((card) => (
              <MetricCard key={card.title} card={card} {...props} />
            ))}
          </div>
          {!found.length && <Empty title="No matching metrics">Change or clear the search.</Empty>}
        </>
      )}
    </details>
  );
}

function sections(cards: Card[]): [string, Card[]][] {
  const found = new Map<string, Card[]>();
  for (const card of cards) found.set(card.section, [...(found.get(card.section) ?? []), card]);
  return [...found];
}

function end(word: string | undefined): number | null {
  const value = Number(word);
  return word && Number.isFinite(value) ? value : null;
}
