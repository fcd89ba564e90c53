/* Data source backed by the server: relative addresses, JSON, errors with messages. */
import { address, SourceError } from "./address";
import type { Source } from "./source";
import type { Changes, Query } from "./types";

export class ServerSource implements Source {
  readonly exported = false;
  readonly note = "";

  private runs: Promise<unknown> | null = null;

  get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
    // The head and the page request the list of runs at the same time: share one request.
    if (path !== "api/runs") return this.request<T>(path, query, signal);
    this.runs ??= this.request<unknown>(path).finally(() => (this.runs = null));
    return this.runs as Promise<T>;
  }

  private async request<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
    let response: Response;
    try {
      response = await fetch(address(path, query), { signal: signal ?? null, credentials: "same-origin" });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new SourceError("The server does not respond. Is `rstar2 view` still running?", 0);
    }
    if (response.ok) return (await response.json()) as T;
    throw new SourceError(await reason(response), response.status);
  }

  changes(since: string | number | null, signal: AbortSignal): Promise<Changes> {
    return this.get<Changes>("api/changes", since === null ? {} : { since }, signal);
  }
}

async function reason(response: Response): Promise<string> {
  if (response.status === 401) return "The server requires its token: open the link that `rstar2 view` printed.";
  try {
    const body = (await response.json()) as { error?: unknown };
    if (typeof body.error === "string") return body.error;
  } catch {
    // Not JSON: report the status instead.
  }
  return `The server responded with status ${response.status}.`;
}
