/* Choice of the columns of a table: which are visible, and their order. The address keeps it, and so does the browser. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { setQuery, useRoute } from "../shell/router";

export interface ChoosableColumn {
  name: string;
  label: string;
}

export interface ColumnChoice {
  /** Names of the chosen columns in order; null without a choice. */
  names: string[] | null;
  choose: (names: string[] | null) => void;
}

/** The choice for a table; an address with `columns=` takes precedence over the stored choice. */
export function useColumnChoice(table: string): ColumnChoice {
  const linked = useRoute().query["columns"];
  const key = `rstar2-view-columns-${table}`;
  const [held, setHeld] = useState(() => read(key));
  return {
    names: namesIn(linked || held),
    choose: (names) => {
      const text = names?.join(",") ?? "";
      setHeld(text);
      write(key, text);
      setQuery({ columns: text });
    },
  };
}

/** Chosen columns in their order; the first column of a table leads to the row and is always visible. */
export function chosenColumns<Column extends ChoosableColumn>(columns: Column[], names: string[]): Column[] {
  const named = new Map(columns.map((column) => [column.name, column]));
  const found = [...new Set(names)].flatMap((name) => named.get(name) ?? []);
  const first = columns[0];
  return !first || found.includes(first) ? found : [first, ...found];
}

/** Names with one moved by a number of places, within the list; the list itself if that moves nothing. */
export function moved(names: string[], name: string, places: number): string[] {
  const at = names.indexOf(name);
  const rest = names.filter((one) => one !== name);
  const to = Math.max(0, Math.min(rest.length, at + places));
  if (to === at) return names;
  rest.splice(to, 0, name);
  return rest;
}

interface PanelProps {
  columns: ChoosableColumn[];
  visible: ChoosableColumn[];
  choice: ColumnChoice;
}

/** Button above a table that opens the choice of its columns. */
export function ColumnPanel(props: PanelProps) {
  const [open, setOpen] = useState(false);
  return (
    <details class="column-choice" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="button small ghost">Columns</summary>
      {open && <Panel {...props} />}
    </details>
  );
}

function Panel({ columns, visible, choice }: PanelProps) {
  const list = useRef<HTMLUListElement>(null);
  const focus = useRef("");
  const [said, setSaid] = useState("");
  const shown = visible.map((column) => column.name);
  // A control that moves its column moves with it, and would lose the focus.
  useLayoutEffect(() => {
    if (focus.current) list.current?.querySelector<HTMLElement>(`[data-focus="${CSS.escape(focus.current)}"]`)?.focus();
    focus.current = "";
  });
  const move = (column: ChoosableColumn, places: number) => {
    const next = moved(shown, column.name, places);
    if (next === shown) return;
    focus.current = `${column.name} ${places}`;
    setSaid(`${column.label}: column ${next.indexOf(column.name) + 1} of ${next.length}`);
    choice.choose(next);
  };
  const toggle = (column: ChoosableColumn) => {
    const { name } = column;
    focus.current = name;
    setSaid("");
    choice.choose(shown.includes(name) ? shown.filter((one) => one !== name) : [...shown, name]);
  };
  const reset = () => {
    if (choice.names === null) return;
    setSaid("");
    choice.choose(null);
  };
  return (
    <div class="card column-panel">
      <ul ref={list} aria-label="Columns of the table">
        {[...visible, ...columns.filter((column) => !shown.includes(column.name))].map((column) => {
          const on = shown.includes(column.name);
          return (
            <li key={column.name}>
              <label>
                <input
                  type="checkbox"
                  checked={on}
                  disabled={column === columns[0]}
                  data-focus={column.name}
                  onChange={() => toggle(column)}
                />
                {column.label}
              </label>
              {on &&
                [-1, 1].map((places) => (
                  <button
                    key={places}
                    type="button"
                    class="button small ghost icon"
                    data-focus={`${column.name} ${places}`}
                    aria-label={`Move ${column.label} ${places < 0 ? "left" : "right"}`}
                    aria-disabled={shown.at(places < 0 ? 0 : -1) === column.name}
                    onClick={() => move(column, places)}
                  >
                    <span aria-hidden="true">{places < 0 ? "←" : "→"}</span>
                  </button>
                ))}
            </li>
          );
        })}
      </ul>
      <button type="button" class="button small" aria-disabled={choice.names === null} onClick={reset}>
        Reset columns
      </button>
      <span class="off-screen" role="status">
        {said}
      </span>
    </div>
  );
}

function namesIn(text: string | undefined): string[] | null {
  const names = (text ?? "").split(",").filter(Boolean);
  return names.length ? names : null;
}

function read(key: string): string {
  try {
    return localStorage.getItem(key) ?? "";
  } catch {
    return "";
  }
}

function write(key: string, text: string): void {
  try {
    if (text) localStorage.setItem(key, text);
    else localStorage.removeItem(key);
  } catch {
    // A page opened from a file may have no storage: the address keeps the choice.
  }
}
