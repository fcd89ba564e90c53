/* Filters, order and window of a list, by the words of the interface's query; the server does the same in its index. */
import type { Query } from "./types";

export type Row = Record<string, unknown>;

const NOT_FILTERS = new Set(["offset", "limit", "sort", "q", "a", "b"]);
const NOT_ERRORS = new Set(["ok", "empty", "unavailable"]);

/** The statuses of a row whose calls are errors of the policy. */
export function errors(statuses: Record<string, number> | undefined): number {
  let count = 0;
  for (const [name, number] of Object.entries(statuses ?? {})) if (!NOT_ERRORS.has(name)) count += number;
  return count;
}

/** Whether a row passes one filter; several values of one are told apart by commas. */
export function passes(row: Row, name: string, wanted: string): boolean {
  if (name === "problem") return String(row["problem_id"] ?? "") === wanted;
  if (name === "problem_q") return `${row["problem_id"]}\n${row["question"]}`.toLowerCase().includes(wanted.toLowerCase());
  if (name === "status") return wanted.split(",").some((status) => count(row["statuses"], status) > 0);
  if (name === "injected") return wanted.split(",").some((status) => injected(row["injected"], status));
  if (name === "step") return within(Number(row["step"]), wanted);
  if (name.startsWith("min_") || name.startsWith("max_")) {
    const value = row[name.slice(4)];
    if (typeof value !== "number") return false;
    return name.startsWith("min_") ? value >= Number(wanted) : value <= Number(wanted);
  }
  const value = row[name];
  if (value === undefined) return true;
  if (typeof value === "boolean" || value === null) return value === (wanted === "1" || wanted === "true");
  return wanted.split(",").includes(String(value));
}

/** Whether a number is in `7`, `3-9`, `3-` or `-9`. */
export function within(value: number, range: string): boolean {
  const ends = /^(\d*)(-?)(\d*)$/.exec(range.trim());
  if (!ends || (!ends[1] && !ends[3])) return true;
  if (!ends[2]) return value === Number(ends[1]);
  return value >= Number(ends[1] || 0) && value <= (ends[3] ? Number(ends[3]) : Infinity);
}

/** A text's words as the server's index has them, letters, numbers and `_` without case and accents, each between two zeros. */
export function wordsOf(text: string): string {
  const plain = text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  return `\0${(plain.match(/[\p{L}\p{N}\p{Co}_]+/gu) ?? []).join("\0")}\0`;
}

/** What a search looks for in `wordsOf` a text: `"in quotes"` side by side, `wor*` by its beginning; all must occur. */
export function searched(q: string): string[] {
  const parts = [...q.matchAll(/"([^"]*)"?|(\S+)/g)];
  return parts.flatMap(([, phrase, word = ""]) => {
    const words = wordsOf(phrase ?? word);
    if (words.length < 3) return [];
    return [word.endsWith("*") ? words.slice(0, -1) : words];
  });
}

/** The rows that a query asks for, in its order, and how many there are before the window is cut; `text` gives `wordsOf` a row. */
export function select(rows: Row[], query: Query, text: (row: Row) => string): { total: number; rows: Row[] } {
  const filters = Object.entries(query).filter(
    ([name, value]) => !NOT_FILTERS.has(name) && value !== undefined && value !== "",
  );
  const words = searched(String(query["q"] ?? ""));
  const found = rows.filter(
    (row) =>
      filters.every(([name, value]) => passes(row, name, String(value))) &&
      (!words.length || words.every((word) => text(row).includes(word))),
  );
  const sort = String(query["sort"] ?? "");
  if (sort && sort !== "key") found.sort(order(sort));
  const offset = Number(query["offset"] ?? 0);
  const limit = query["limit"] === undefined ? found.length : Number(query["limit"]);
  return { total: found.length, rows: found.slice(offset, offset + limit) };
}

/** An order by a column; `-column` descends. Values that are missing come last either way. */
export function order(sort: string): (a: Row, b: Row) => number {
  const down = sort.startsWith("-");
  const name = down ? sort.slice(1) : sort;
  return (a, b) => {
    const [left, right] = [sortable(a[name]), sortable(b[name])];
    if (left === null || right === null) return left === right ? 0 : left === null ? 1 : -1;
    const way =
      typeof left === "number" && typeof right === "number" ? left - right : String(left) < String(right) ? -1 : String(left) > String(right) ? 1 : 0;
    return down ? -way : way;
  };
}

function sortable(value: unknown): number | string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "number" || typeof value === "string") return value;
  if (typeof value === "boolean") return Number(value);
  // A side of a comparison is ordered by its success, counts of statuses by how many are errors.
  if (typeof value === "object" && "success" in value) return sortable(value.success);
  if (typeof value === "object") return errors(value as Record<string, number>);
  return String(value);
}

function count(statuses: unknown, status: string): number {
  const counts = (statuses ?? {}) as Record<string, number>;
  return status === "error" ? errors(counts) : (counts[status] ?? 0);
}

function injected(faults: unknown, wanted: string): boolean {
  const counts = (faults ?? {}) as Record<string, number>;
  return wanted === "1" || wanted === "any" ? Object.keys(counts).length > 0 : (counts[wanted] ?? 0) > 0;
}
