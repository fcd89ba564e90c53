/* Data source of an export: responses by address, embedded in the page; lists are filtered, sorted and paged here. */
import { address, SourceError } from "./address";
import { type Row, select, wordsOf } from "./rows";
import type { Source } from "./source";
import type { Changes, EpisodeLine, Page, Query } from "./types";

export interface Embedded {
  version: number;
  made?: string;
  note?: string;
  responses: Record<string, unknown>;
}

/** Addresses of lists. Their queries select rows, order and page; other queries are part of the address. */
const LISTS = /^api\/(runs\/[^/]+\/(episodes|groups|problems)|compare)$/;
const OF_ADDRESS = new Set(["a", "b", "a_step", "b_step"]);

/** Decode the data of an export: gzipped JSON in base64. */
export async function readEmbedded(text: string): Promise<Embedded> {
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const data = (await new Response(stream).json()) as Embedded;
  if (data.version !== 1) throw new SourceError(`This page contains data of version ${data.version}, but supports only version 1.`, 0);
  return data;
}

export class EmbeddedSource implements Source {
  readonly exported = true;
  readonly note: string;
  private readonly texts = new Map<string, string>();
  private readonly responses: Map<string, unknown>;

  constructor(data: Embedded) {
    this.note = data.note ?? "";
    this.responses = new Map(Object.entries(data.responses).map(([name, body]) => [plain(name), body]));
  }

  async get<T>(path: string, query: Query = {}): Promise<T> {
    const list = LISTS.test(path);
    const found = this.find(path, list ? this.ofAddress(path, query) : query) ?? this.swapped(path, query);
    if (found === undefined) throw new SourceError("This is not included in the exported page.", 404);
    if (!list) return found as T;
    const page = found as Page<Row>;
    const picked = select(page.rows, query, (row) => this.text(path, row));
    return { ...page, ...picked } as T;
  }

  changes(): Promise<Changes> {
    return new Promise(() => undefined);
  }

  private ofAddress(path: string, query: Query): Query {
    if (path !== "api/compare") return {};
    const split = query["split"] ?? "eval";
    return { ...Object.fromEntries(Object.entries(query).filter(([name]) => OF_ADDRESS.has(name))), split };
  }

  private find(path: string, query: Query): unknown {
    return this.responses.get(plain(address(path, query))) ?? this.responses.get(plain(path));
  }

  /** Derive a comparison of two runs from the one in the opposite order; the export contains only one of them. */
  private swapped(path: string, query: Query): unknown {
    if (path !== "api/compare" && path !== "api/difference") return undefined;
    const { a, b, a_step, b_step } = query;
    const words = { a: b, b: a, a_step: b_step, b_step: a_step } as Query;
    const found = this.find(path, path === "api/compare" ? { ...words, split: query["split"] ?? "eval" } : words);
    return found === undefined ? undefined : mirrored(found);
  }

  /** Searchable text of an episode, cached. */
  private text(path: string, row: Row): string {
    const key = `${path}/${encodeURIComponent(String(row["key"] ?? ""))}`;
    const known = this.texts.get(key);
    if (known !== undefined) return known;
    const line = this.responses.get(plain(key)) as EpisodeLine | undefined;
    const messages = (line?.messages ?? []).map((message) => message.content);
    const text = wordsOf([row["question"], row["problem_id"], ...messages, line?.["answer"], line?.gold].map((one) => String(one ?? "")).join("\n"));
    if (row["key"] !== undefined) this.texts.set(key, text);
    return text;
  }
}

const OPPOSITE: Record<string, string> = { gained: "lost", lost: "gained" };

/** Swap the two runs in a comparison. */
function mirrored(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one: unknown) => (typeof one === "object" && one !== null ? mirrored(one) : one));
  if (typeof value !== "object" || value === null) return value;
  const { a, b, only_a, only_b, difference, low, high, gained, lost, change, steps, rows, options, figures, ...rest } = value as Row;
  const minus = (number: unknown) => (typeof number === "number" ? -number : number);
  const given: Row = {
    a: b,
    b: a,
    only_a: only_b,
    only_b: only_a,
    difference: minus(difference),
    low: minus(high),
    high: minus(low),
    gained: typeof gained === "boolean" ? typeof difference === "number" && difference < 0 : lost,
    lost: gained,
    change: typeof change === "string" ? (OPPOSITE[change] ?? change) : change,
    steps: Array.isArray(steps) ? [...steps].reverse() : steps,
    rows: mirrored(rows),
    options: mirrored(options),
    figures: mirrored(figures),
  };
  return { ...rest, ...Object.fromEntries(Object.entries(given).filter(([name]) => name in (value as Row))) };
}

/** Unescape an address: Python and JavaScript escape different characters. */
function plain(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
