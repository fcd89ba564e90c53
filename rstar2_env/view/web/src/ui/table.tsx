/* A table of any length: only visible rows are rendered. Sortable by its headings, with keyboard navigation as one grid. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { chosenColumns, ColumnPanel, useColumnChoice } from "./column-choice";
import { Empty, Failed, Loading } from "./states";
import { useVirtual } from "./use-virtual";
import { useWide } from "./wide";
import type { Windowed } from "./windowed";

const HEAD = 36;

/** Scroll positions of lists, while the page is open. */
const LEFT = new Map<string, { top: number; active: number }>();

export interface TableColumn<Row> {
  name: string;
  label: string;
  /** Tooltip of the heading. */
  title?: string;
  /** Width in pixels; columns with `grow` share the remaining space. */
  width: number;
  grow?: boolean;
  /** Preferred width before columns of higher rank get space. */
  wish?: number;
  align?: "right";
  sortable?: boolean;
  /** Columns with a higher rank are hidden first if space is short, and columns without a rank are shown only if they are
      chosen; rank 0 is always visible. */
  rank?: number;
  cell: (row: Row) => ComponentChildren;
}

export interface TableProps<Row> {
  label: string;
  /** Name under which the browser stores the choice of columns. */
  name: string;
  rows: Windowed<Row>;
  /** Columns in their usual order; the first one leads to the row, and cannot be hidden. */
  columns: TableColumn<Row>[];
  rowKey: (row: Row) => string;
  /** Address that a row links to. */
  to?: (row: Row, index: number) => string;
  sort: string;
  onSort: (sort: string) => void;
  /** Sentence for a table without rows. */
  empty: string;
  rowHeight?: number;
  rowClass?: (row: Row) => string;
}

export function Table<Row>(props: TableProps<Row>) {
  const { rows, rowHeight = 36 } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const id = useId();
  const wide = useWide(scroller);
  const choice = useColumnChoice(props.name);
  const chosen = choice.names?.join();
  const columns = useMemo(
    () => (choice.names ? chosenColumns(props.columns, choice.names) : fitting(props.columns, wide)),
    [props.columns, chosen, wide],
  );
  const linked = props.columns[0];
  const template = columns
    .map((column) => (column.grow ? `minmax(${column.width}px, 1fr)` : `${column.width}px`))
    .join(" ");
  const total = rows.total ?? 0;
  const virtual = useVirtual(total, rowHeight, scroller, HEAD);
  const [active, setActive] = useState(-1);
  const first = virtual.items[0]?.index ?? 0;
  const last = virtual.items.at(-1)?.index ?? 0;
  useEffect(() => rows.show(first, last));
  useEffect(() => setActive((at) => Math.min(at, total - 1)), [total]);
  const known = rows.total !== null;
  useLayoutEffect(() => {
    // Restore the scroll position of a revisited list; a different order or filter starts at the top.
    const left = LEFT.get(rows.list);
    setActive(known ? (left?.active ?? -1) : -1);
    scroller.current?.scrollTo({ top: known ? (left?.top ?? 0) : 0 });
  }, [rows.list, known]);
  useEffect(() => {
    if (known) LEFT.set(rows.list, { top: scroller.current?.scrollTop ?? 0, active });
  });

  if (rows.error && rows.total === null) return <Failed error={rows.error} again={rows.again} />;
  const move = (to: number) => {
    const at = Math.max(0, Math.min(total - 1, to));
    setActive(at);
    virtual.scrollTo(at);
  };
  const onKey = (event: KeyboardEvent) => {
    if ((event.target as HTMLElement).closest("[role=columnheader]") && event.key !== "ArrowDown") return;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 400) / rowHeight) - 2);
    const steps: Record<string, () => void> = {
      ArrowDown: () => move(active + 1),
      j: () => move(active + 1),
      ArrowUp: () => move(active - 1),
      k: () => move(active - 1),
      PageDown: () => move(active + page),
      PageUp: () => move(active - page),
      Home: () => move(0),
      End: () => move(total - 1),
      Enter: () => {
        const row = rows.row(active);
        if (row && props.to) location.hash = props.to(row, active);
      },
    };
    const step = event.ctrlKey || event.metaKey || event.altKey ? undefined : steps[event.key];
    if (!step || !total) return;
    event.preventDefault();
    event.stopPropagation();
    step();
  };
  const rendered = active >= first && active <= last;
  return (
    <>
      <ColumnPanel columns={props.columns} visible={columns} choice={choice} />
      <div class="table-frame">
        {rows.error && (
          <p class="table-error" role="alert">
            Some rows could not be loaded. {rows.error.message}{" "}
            <button type="button" class="button small" onClick={rows.again}>
              Try again
            </button>
          </p>
        )}
        <div
          class="table"
          role="grid"
          aria-label={props.label}
          aria-rowcount={rows.total === null ? -1 : total + 1}
          aria-colcount={columns.length}
          aria-activedescendant={active >= 0 && rendered ? `${id}-${active}` : undefined}
          aria-busy={rows.loading}
          tabIndex={0}
          ref={scroller}
          onKeyDown={onKey}
          onFocus={(event) => event.target === event.currentTarget && active < 0 && total && setActive(first)}
        >
          <div role="rowgroup" class="table-head">
            <div role="row" class="row" aria-rowindex={1} style={{ gridTemplateColumns: template, height: `${HEAD}px` }}>
              {columns.map((column) => (
                <Head key={column.name} column={column} sort={props.sort} onSort={props.onSort} />
              ))}
            </div>
          </div>
          <div role="rowgroup" class="table-body" style={{ height: total ? `${virtual.height}px` : "auto" }}>
            {virtual.items.map((item) => {
              const row = rows.row(item.index);
              return (
                <div
                  key={row ? props.rowKey(row) : item.index}
                  id={`${id}-${item.index}`}
                  role="row"
                  aria-rowindex={item.index + 2}
                  aria-selected={item.index === active}
                  class={`row${item.index === active ? " active" : ""} ${row && props.rowClass ? props.rowClass(row) : ""}`}
                  style={{ gridTemplateColumns: template, height: `${rowHeight}px`, transform: `translateY(${item.start}px)` }}
                  onClick={(event) => {
                    setActive(item.index);
                    const onLink = (event.target as HTMLElement).closest("a");
                    if (row && props.to && !onLink && !String(getSelection())) location.hash = props.to(row, item.index);
                  }}
                >
                  {columns.map((column) => (
                    <div key={column.name} role="gridcell" class={`cell ${column.align ?? ""}`}>
                      {!row ? (
                        <span class="ghost-cell" aria-hidden="true" />
                      ) : column === linked && props.to ? (
                        <a href={props.to(row, item.index)} tabIndex={-1}>
                          {column.cell(row)}
                        </a>
                      ) : (
                        column.cell(row)
                      )}
                    </div>
                  ))}
                </div>
              );
            })}
            {total === 0 && (
              <div role="row" class="row-note">
                <div role="gridcell">{rows.loading ? <Loading /> : <Empty title={props.empty} />}</div>
              </div>
            )}
          </div>
        </div>
      </div>
    </>
  );
}

function Head<Row>({
  column,
  sort,
  onSort,
}: {
  column: TableColumn<Row>;
  sort: string;
  onSort: (sort: string) => void;
}) {
  const up = sort === column.name;
  const down = sort === `-${column.name}`;
  const sorted = up ? "ascending" : down ? "descending" : "none";
  return (
    <div
      role="columnheader"
      class={`cell ${column.align ?? ""}`}
      aria-sort={column.sortable ? sorted : undefined}
      title={column.title}
    >
      {column.sortable ? (
        <button type="button" onClick={() => onSort(down ? column.name : `-${column.name}`)}>
          {column.label}
          <span class="sort-sign" aria-hidden="true">
            {up ? "▲" : down ? "▼" : ""}
          </span>
        </button>
      ) : (
        column.label
      )}
    </div>
  );
}

/** Columns that fit, in order. */
function fitting<Row>(columns: TableColumn<Row>[], wide: number): TableColumn<Row>[] {
  const ranked = columns.filter((column): column is TableColumn<Row> & { rank: number } => column.rank !== undefined);
  const chosen = new Set<TableColumn<Row>>();
  let used = 24;
  const wished = ranked.reduce((sum, column) => sum + Math.max(0, (column.wish ?? 0) - column.width), 0);
  for (const column of [...ranked].sort((a, b) => a.rank - b.rank)) {
    const needed = column.rank > 0 ? wished : 0;
    if (column.rank > 0 && used + column.width + needed > wide) break;
    chosen.add(column);
    used += column.width;
  }
  return columns.filter((column) => chosen.has(column));
}
