/* uPlot as a component: lines with bands, or stacked areas; drag to zoom, double-click to reset. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useTheme } from "../shell/theme";
import { aligned, type Line, stacked } from "./lines";
import { dash, hatched, type Look, look } from "./palette";
import type { Numbers } from "../data/types";
import { percent } from "../format";
import { bounds, tickLabels } from "./bounds";
import { drawMarks, type PlacedMark } from "./marks";

export interface Axes {
  logX: boolean;
  logY: boolean;
  /** Visible range of the x axis; null shows everything. */
  from: number | null;
  to: number | null;
  /** Events that are marked at the lower edge. */
  marks?: PlacedMark[];
}

export interface CanvasProps {
  lines: Line[];
  stack: boolean;
  axes: Axes;
  form: (value: number) => string;
  height: number;
  label: string;
  /** Unit of the x axis, its name below the plot. */
  unit: string;
  formX: (x: number) => string;
  /** Position on the x axis under the pointer; null when the pointer leaves. */
  onPoint: (x: number | null) => void;
  onZoom: (from: number | null, to: number | null) => void;
  /** A click on a point of the x axis; a double click resets the zoom instead. */
  onPick?: ((x: number) => void) | undefined;
}

/** Synchronizes the cursors of all plots on the page. */
const SYNC = uPlot.sync("steps");
/** Distances between ticks of an axis of seconds, in seconds. */
const TIME_TICKS = [0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800];
/** Distances between ticks of an axis of steps, which are whole numbers. */
const STEP_TICKS = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((first) => first * 10 ** power)).flat();
/** Time in which a second click makes a double click, in milliseconds. */
const DOUBLE_MS = 300;

export function Canvas(props: CanvasProps) {
  const place = useRef<HTMLDivElement>(null);
  const { shown } = useTheme();
  const now = useRef(props);
  now.current = props;
  const { lines, stack, axes, height } = props;
  useEffect(() => {
    const node = place.current;
    if (!node) return;
    const plot = new uPlot(
      options(node.clientWidth, now, look(shown)),
      dataOf(lines, stack, axes),
      node,
    );
    const observer = new ResizeObserver(() => {
      if (node.clientWidth > 0 && node.clientWidth !== plot.width) plot.setSize({ width: node.clientWidth, height });
    });
    observer.observe(node);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [lines, stack, axes.logX, axes.logY, axes.from, axes.to, axes.marks, height, shown]);
  return <div class="canvas" ref={place} role="img" aria-label={props.label} style={{ minHeight: `${height}px` }} />;
}

/** Columns for uPlot: for a line its band, raw values and smoothed values; for areas their upper edges. */
function dataOf(lines: Line[], stack: boolean, axes: Axes): uPlot.AlignedData {
  const series = stack
    ? lines.map(({ x, y }) => ({ x, y }))
    : lines.flatMap(({ x, y, band, raw }) => [
        ...(band ? [{ x, y: band.high }, { x, y: band.low }] : []),
        ...(raw ? [{ x, y: raw }] : []),
        { x, y },
      ]);
  const { x, columns } = aligned(series);
  const drawn = stack ? stacked(columns) : columns;
  const start = axes.logX ? x.findIndex((value) => value > 0) : 0;
  const positive = (column: Numbers) => (axes.logY ? column.map((v) => (v !== null && v > 0 ? v : null)) : column);
  const cut = Math.max(0, start);
  return [x.slice(cut), ...drawn.map((column) => positive(column).slice(cut))] as uPlot.AlignedData;
}

function options(width: number, now: { current: CanvasProps }, colors: Look): uPlot.Options {
  const { lines, stack, axes, form, height, unit, formX } = now.current;
  const { series, bands } = stack ? areas(lines, colors) : curves(lines, colors);
  const picking: { timer?: ReturnType<typeof setTimeout> } = {};
  const axis: uPlot.Axis = {
    stroke: colors.text,
    grid: { stroke: colors.grid, width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
    gap: 4,
  };
  const values = axes.logY ? (_: uPlot, splits: number[]) => splits.map((v) => (decade(v) ? form(v) : "")) : (_: uPlot, splits: number[]) => tickLabels(splits, form);
  return {
    width: Math.max(width, 120),
    height,
    series: [{}, ...series],
    bands,
    legend: { show: false },
    padding: [8, 18, 0, 0],
    scales: {
      x: { time: false, distr: axes.logX ? 3 : 1, ...range(axes) },
      y: { distr: axes.logY ? 3 : 1, ...(axes.logY ? {} : { range: stack ? (_u, _min, max) => [0, max || 1] : (_u, min, max) => bounds(min, max, form === percent) }) },
    },
    axes: [
      { ...axis, size: 20, ...(unit === "time" ? { incrs: TIME_TICKS } : unit === "step" ? { incrs: STEP_TICKS } : {}), space: unit === "step" ? 44 : 76, values: (_: uPlot, splits: number[]) => splits.map((v) => (v === null ? "" : formX(v))), label: unit, labelSize: 14, labelGap: 0, labelFont: "11px system-ui, sans-serif" },
      { ...axis, size: 52, space: 30, values },
    ],
    cursor: {
      sync: { key: SYNC.key, setSeries: false },
      drag: { x: true, y: false, setScale: false },
      points: { size: 6 },
      y: false,
      bind: {
        dblclick: () => () => {
          clearTimeout(picking.timer);
          now.current.onZoom(null, null);
          return null;
        },
      },
    },
    hooks: {
      ready: [
        (u) => {
          if (!now.current.onPick) return;
          u.over.style.cursor = "pointer";
          u.over.addEventListener("click", () => {
            clearTimeout(picking.timer);
            const x = u.cursor.idx === null || u.cursor.idx === undefined ? undefined : u.data[0][u.cursor.idx];
            if (x !== undefined) picking.timer = setTimeout(() => now.current.onPick?.(x), DOUBLE_MS);
          });
        },
      ],
      draw: [(u) => drawMarks(u, axes.marks ?? [], colors)],
      destroy: [() => clearTimeout(picking.timer)],
      setCursor: [(u) => now.current.onPoint(u.cursor.idx === null || u.cursor.idx === undefined ? null : (u.data[0][u.cursor.idx] ?? null))],
      setSelect: [
        (u) => {
          if (u.select.width < 4) return;
          const [from, to] = [u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")];
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          // Steps are whole numbers; show fractions only when zoomed in far.
          const whole = to - from > 4;
          const cut = (value: number) => (whole ? Math.round(value) : Math.round(value * 100) / 100);
          now.current.onZoom(cut(from), cut(to));
        },
      ],
    },
  };
}

function curves(lines: Line[], colors: Look): { series: uPlot.Series[]; bands: uPlot.Band[] } {
  const series: uPlot.Series[] = [];
  const bands: uPlot.Band[] = [];
  for (const line of lines) {
    const stroke = colors.line(line.color);
    if (line.band) {
      bands.push({ series: [series.length + 1, series.length + 2], fill: colors.area(line.color, 0.18) });
      for (let edge = 0; edge < 2; edge++) series.push({ width: 0, points: { show: false }, spanGaps: true });
    }
    if (line.raw) series.push({ stroke: colors.area(line.color, 0.3), width: 1, points: { show: false }, spanGaps: true });
    const few = line.y.filter((value) => value !== null).length < 40;
    series.push({
      stroke,
      width: 1.8,
      dash: dash(line.dash),
      spanGaps: true,
      points: { show: few, size: 4, fill: stroke },
    });
  }
  return { series, bands };
}

function areas(lines: Line[], colors: Look): { series: uPlot.Series[]; bands: uPlot.Band[] } {
  const series = lines.map((line, at): uPlot.Series => {
    const color = colors.line(line.color);
    return {
      stroke: color,
      width: 1,
      points: { show: false },
      spanGaps: true,
      ...(at === 0 ? { fill: (u: uPlot) => hatched(u.ctx, color, line.color) as CanvasPattern } : {}),
    };
  });
  const bands = lines.slice(1).map((line, at): uPlot.Band => {
    const color = colors.line(line.color);
    return { series: [at + 2, at + 1], fill: (u: uPlot) => hatched(u.ctx, color, line.color) as CanvasPattern };
  });
  return { series, bands };
}

function range(axes: Axes): Pick<uPlot.Scale, "range"> | Record<string, never> {
  if (axes.from === null && axes.to === null) return {};
  return {
    range: (_u: uPlot, min: number, max: number) => [axes.from ?? min, axes.to ?? max],
  };
}

function decade(value: number | null): boolean {
  if (value === null || value <= 0) return false;
  const power = Math.log10(value);
  return Math.abs(power - Math.round(power)) < 1e-9;
}
