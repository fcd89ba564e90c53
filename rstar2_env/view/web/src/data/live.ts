/* Live updates: one long-polling request for the whole page, paused while the page is hidden. */
import type { Source } from "./source";

export type LiveState = "live" | "paused" | "lost" | "exported";

const RETRY_MS = [1000, 2000, 5000, 10000];
const GAP_MS = 500;

/** Follows a source; pages subscribe, and reload when the version of their run has grown. */
export class Live {
  state: LiveState;
  updated: Date | null = null;
  private readonly versions = new Map<string, number>();
  private readonly listeners = new Set<() => void>();
  private cursor: string | number | null = null;
  private stop: AbortController | null = null;
  private wanted = true;

  constructor(private readonly source: Source) {
    this.state = source.exported ? "exported" : "live";
  }

  start(): void {
    if (this.source.exported) return;
    document.addEventListener("visibilitychange", () => this.applyState());
    this.applyState();
  }

  /** Pause or resume, on the user's request. */
  toggle(): void {
    this.wanted = !this.wanted;
    this.applyState();
  }

  /** Counter that grows when a run changes; without a name, when any run changes. */
  version(run?: string): number {
    return this.versions.get(run ?? "") ?? 0;
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private applyState(): void {
    const go = this.wanted && !document.hidden;
    if (go && !this.stop) {
      this.stop = new AbortController();
      void this.follow(this.stop.signal);
    } else if (!go && this.stop) {
      this.stop.abort();
      this.stop = null;
    }
    this.setState(go ? "live" : "paused");
  }

  private async follow(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      try {
        const answer = await this.source.changes(this.cursor, signal);
        this.cursor = answer.cursor;
        failures = 0;
        if (answer.changed.length || answer.runs) this.changed(answer.changed);
        this.setState("live");
        await pause(GAP_MS, signal);
      } catch {
        if (signal.aborted) return;
        this.setState("lost");
        await pause(RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)] ?? GAP_MS, signal);
      }
    }
  }

  private changed(runs: string[]): void {
    this.updated = new Date();
    for (const run of ["", ...runs]) this.versions.set(run, this.version(run) + 1);
    for (const listener of this.listeners) listener();
  }

  private setState(state: LiveState): void {
    if (this.state === state) return;
    this.state = state;
    for (const listener of this.listeners) listener();
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const stop = () => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener("abort", stop, { once: true });
  });
}
