/* Filters, sort order and paging of lists in an export; the server does the same with its index. */
import type { Query } from "./types";

export type Row = Record<string, unknown>;

const NOT_FILTERS = new Set(["offset", "limit", "sort", "q", "a", "b"]);
const NOT_ERRORS = new Set(["ok", "empty", "unavailable"]);

/** Number of calls in a row that are errors of the policy. */
export function errors(statuses: Record<string, number> | undefined): number {
  let count = 0;
  for (const [name, number] of Object.entries(statuses ?? {})) if (!NOT_ERRORS.has(name)) count += number;
  return count;
}

/** Whether a row passes one filter; commas separate alternative values. */
export function passes(row: Row, name: string, wanted: string): boolean {
  if (name === "problem") return String(row["problem_id"] ?? "") === wanted;
  if (name === "problem_q") return `${row["problem_id"]}\n${row["question"]}`.toLowerCase().includes(wanted.toLowerCase());
  if (name === "status") return wanted.split(",").some((status) => count(row["statuses"], status) > 0);
  if (name === "last") return wanted.split(",").some((status) => row["last_status"] !== "" && count({ [String(row["last_status"])]: 1 }, status) > 0);
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

/** Whether a number is in a range such as `7`, `3-9`, `3-` or `-9`. */
export function within(value: number, range: string): boolean {
  const ends = /^(\d*)(-?)(\d*)$/.exec(range.trim());
  if (!ends || (!ends[1] && !ends[3])) return true;
  if (!ends[2]) return value === Number(ends[1]);
  return value >= Number(ends[1] || 0) && value <= (ends[3] ? Number(ends[3]) : Infinity);
}

/** Tokenize a text like the server's index: letters, digits and `_`, without case and accents, separated by NUL. */
export function wordsOf(text: string): string {
  const plain = text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  return `\0${(plain.match(/[\p{L}\p{N}\p{Co}_]+/gu) ?? []).join("\0")}\0`;
}

/** Terms of a search, to find in the result of `wordsOf`: `"a phrase"` in order, `wor*` as a prefix; all must occur. */
export function searched(q: string): string[] {
  const parts = [...q.matchAll(/"([^"]*)"?|(\S+)/g)];
  return parts.flatMap(([, phrase, word = ""]) => {
    const words = wordsOf(phrase ?? word);
    if (words.length < 3) return [];
    return [word.endsWith("*") ? words.slice(0, -1) : words];
  });
}

/** Rows of a page that match a query, in its order, and the total number of matches; `text` returns the searchable text of a row. */
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

/** Comparison function for a column; `-column` sorts descending. Missing values always come last. */
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
  // Sides of a comparison are sorted by success, counts of statuses by the number of errors.
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
