/* Where the pages get their data: a server, or the page itself (an export). Pages know only `Source`. */
import { EmbeddedSource, readEmbedded } from "./embedded";
import { ServerSource } from "./server";
import type { Changes, Query } from "./types";

export interface Source {
  /** Whether the data lies in the page and never changes. */
  readonly exported: boolean;
  /** What was left out of an export, and why; empty with a server. */
  readonly note: string;
  /** The answer to an address of the interface; rejects with a `SourceError`. */
  get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T>;
  /** Waits, for a bounded time, until something changed since a cursor. */
  changes(since: string | number | null, signal: AbortSignal): Promise<Changes>;
}

/** The source of this page: the data that it carries, if it carries any, else the server that it came from. */
export async function openSource(): Promise<Source> {
  const embedded = document.getElementById("embedded");
  return embedded ? new EmbeddedSource(await readEmbedded(embedded.textContent ?? "")) : new ServerSource();
}
