/* A plot in a card: title, values under the pointer, a legend that toggles lines, and the data as a table. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { stepNumber } from "../format";
import { go } from "../shell/router";
import { useTheme } from "../shell/theme";
import { Copy } from "../ui/copy";
import { type Axes, Canvas } from "./canvas";
import { aligned, type Line, thinned, describe, withBand } from "./lines";
import { eventsAt, type PlacedMark } from "./marks";
import { dash, hatching, look } from "./palette";

const MOST_ROWS = 400;

export interface PlotCardProps {
  title: string;
  help?: string;
  lines: Line[];
  stack?: boolean;
  axes: Axes;
  form: (value: number) => string;
  onZoom: (from: number | null, to: number | null) => void;
  /** Address behind a point of the x axis: a click on the plot, or a link in the table of data. */
  linkOf?: ((x: number) => string) | undefined;
  /** Unit of the x axis, and the format of its values. */
  unit?: string;
  formX?: (x: number) => string;
  height?: number;
  tools?: ComponentChildren;
}

export function PlotCard(props: PlotCardProps) {
  const { title, lines, axes, form, stack = false, unit = "step", formX = stepNumber, height = 200 } = props;
  const marks = axes.marks ?? [];
  const [off, setOff] = useState<Set<string>>(new Set());
  const [point, setPoint] = useState<number | null>(null);
  const [open, setOpen] = useState(false);
  const drawn = useMemo(() => lines.filter((line) => !off.has(line.id)), [lines, off]);
  const near = useNear();
  const toggle = (id: string) => {
    const next = new Set(off);
    if (!next.delete(id)) next.add(id);
    setOff(next);
  };
  const summary = `${title} by ${unit}. ${drawn.map((line) => `${line.label}: ${describe(line, form)}`).join(". ")}. The table below contains the data.`;
  return (
    <section class="card plot-card" aria-label={title} ref={near.place}>
      <header class="card-head">
        <h3>{title}</h3>
        {props.tools}
      </header>
      {props.help && <p class="card-help">{props.help}</p>}
      {near.seen ? (
        <Canvas
          lines={drawn}
          stack={stack}
          axes={axes}
          form={form}
          height={height}
          label={summary}
          unit={unit}
          formX={formX}
          onPoint={setPoint}
          onZoom={props.onZoom}
          onPick={props.linkOf && ((x) => go(props.linkOf?.(x) ?? ""))}
        />
      ) : (
        <div style={{ minHeight: `${height}px` }} />
      )}
      <Legend lines={lines} off={off} toggle={toggle} point={point} form={form} stack={stack} at={point === null ? lastOf(lines, unit, formX) : [`${unit} ${formX(point)}`, eventsAt(marks, point)].filter(Boolean).join(": ")} />
      <details class="plot-data" onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Data of “{title}”</summary>
        {open && <DataTable lines={drawn} form={form} unit={unit} formX={formX} marks={marks} title={title} linkOf={props.linkOf} />}
      </details>
    </section>
  );
}

function Legend({
  lines,
  off,
  toggle,
  point,
  form,
  stack,
  at,
}: {
  lines: Line[];
  off: Set<string>;
  toggle: (id: string) => void;
  point: number | null;
  form: (value: number) => string;
  stack: boolean;
  /** The position whose values are shown. */
  at: string;
}) {
  return (
    <div class="legend">
      <ul>
        <li class="legend-x" aria-hidden="true">
          {at}
        </li>
        {lines.map((line) => (
          <li key={line.id}>
            <button type="button" aria-pressed={!off.has(line.id)} onClick={() => toggle(line.id)} title="Show or hide">
              <Swatch line={line} area={stack} />
              <span class="legend-name">{line.label}</span>
              <span class="legend-value">{valueAt(line, point, form)}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Patterns of areas, as in the plot. */
const HATCHES = ["", "M5 10 13 0M11 10 19 0", "M5 0 13 10M11 0 19 10", "M6 5h2m2 0h2m2 0h2", "M5 10 13 0M11 10 19 0M5 0 13 10M11 0 19 10"];

/** Symbol of a line in legends: its colour and dash, or a square for an area. */
export function Swatch({ line, area = false }: { line: Pick<Line, "color" | "dash">; area?: boolean }) {
  const { shown } = useTheme();
  const color = look(shown).line(line.color);
  return (
    <svg class="swatch" width="22" height="10" aria-hidden="true">
      {area ? (
        <>
          <rect x="3" y="0" width="16" height="10" rx="2" fill={color} fill-opacity={hatching(line.color) ? 0.33 : 0.7} />
          <path d={HATCHES[hatching(line.color)]} stroke={color} stroke-width="1.4" fill="none" />
        </>
      ) : (
        <line x1="0" y1="5" x2="22" y2="5" stroke={color} stroke-width="2.4" stroke-dasharray={dash(line.dash).join(" ")} />
      )}
    </svg>
  );
}

/** Position of the values that a legend shows without a pointer, if it is the same for all lines. */
function lastOf(lines: Line[], unit: string, formX: (x: number) => string): string {
  const ends = new Set(lines.map(({ x, y, raw }) => x[(raw ?? y).findLastIndex((value) => value !== null)]));
  const [end] = ends;
  return ends.size === 1 && end !== undefined ? `${unit} ${formX(end)}` : "last values";
}

function valueAt(line: Line, x: number | null, form: (value: number) => string): string {
  // For a smoothed line, show the measured values.
  const values = line.raw ?? line.y;
  let at = -1;
  for (const [index, value] of line.x.entries()) {
    if (values[index] === null || values[index] === undefined) continue;
    if (x !== null && value > x) break;
    at = index;
  }
  const value = values[at];
  return value === null || value === undefined ? "–" : form(value);
}

function DataTable({
  lines,
  form,
  unit,
  formX,
  marks,
  title,
  linkOf,
}: {
  lines: Line[];
  form: (value: number) => string;
  unit: string;
  formX: (x: number) => string;
  marks: PlacedMark[];
  title: string;
  linkOf?: ((x: number) => string) | undefined;
}) {
  const shown = useMemo(() => lines.flatMap(withBand), [lines]);
  const { x, columns } = useMemo(() => aligned(shown), [shown]);
  const rows = thinned(x.length, MOST_ROWS);
  const csv = () =>
    [[unit, ...shown.map((line) => `"${line.label.replace(/"/g, '""')}"`)], ...x.map((value, at) => [value, ...columns.map((column) => column[at] ?? "")])]
      .map((cells) => cells.join(","))
      .join("\n");
  return (
    <>
      <p class="plot-data-head">
        {rows.length < x.length && `${rows.length} of ${x.length} points, evenly chosen. `}
        <Copy text={csv} what={`the data of ${title}`} label="Copy CSV" />
      </p>
      <div class="plot-data-rows" tabIndex={0} role="region" aria-label={`Data of ${title}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">{unit}</th>
              {shown.map((line) => (
                <th scope="col" key={line.id}>
                  {line.label}
                </th>
              ))}
              {marks.length > 0 && <th scope="col">Events</th>}
            </tr>
          </thead>
          <tbody>
            {rows.map((at) => (
              <tr key={at}>
                <th scope="row">{linkOf ? <a href={linkOf(x[at] ?? 0)}>{formX(x[at] ?? 0)}</a> : formX(x[at] ?? 0)}</th>
                {columns.map((column, index) => (
                  <td key={index}>{column[at] === null || column[at] === undefined ? "–" : form(column[at])}</td>
                ))}
                {marks.length > 0 && <td>{eventsAt(marks, x[at] ?? 0) || "–"}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Whether an element is near the viewport: plots further down are drawn when they are reached. */
function useNear(): { place: { current: HTMLElement | null }; seen: boolean } {
  const place = useRef<HTMLElement>(null);
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    if (seen || !place.current) return;
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && setSeen(true), {
      rootMargin: "300px",
    });
    observer.observe(place.current);
    return () => observer.disconnect();
  }, [seen]);
  return { place, seen };
}
