/* The interface of data sources: a server, or the data embedded in an exported page. Pages use only this interface. */
import type { Changes, Query } from "./types";

export interface Source {
  /** Whether the data is embedded in the page and never changes. */
  readonly exported: boolean;
  /** Note about data that an export omits; empty for a server. */
  readonly note: string;
  /** Return the response for an address of the API; rejects with a `SourceError`. */
  get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T>;
  /** Wait, for a limited time, for changes since a cursor. */
  changes(since: string | number | null, signal: AbortSignal): Promise<Changes>;
}
