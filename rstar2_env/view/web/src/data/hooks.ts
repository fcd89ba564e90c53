/* Hooks for pages: load a response from the source and reload it when its run changes; versions of runs. */
import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { address } from "./address";
import type { Live } from "./live";
import type { Source } from "./source";
import type { Query } from "./types";

export interface Data {
  source: Source;
  live: Live;
}

export const DataContext = createContext<Data | null>(null);

export function useDataContext(): Data {
  const data = useContext(DataContext);
  if (!data) throw new Error("DataContext is missing.");
  return data;
}

/** Version of a run, or of all runs without a name; the component rerenders when it grows. */
export function useVersion(run?: string): number {
  const { live } = useDataContext();
  const [version, setVersion] = useState(live.version(run));
  useEffect(() => {
    const read = () => setVersion(live.version(run));
    read();
    return live.subscribe(read);
  }, [live, run]);
  return version;
}

/** Versions of several runs as one string, which changes when any of them changes. */
function useVersions(runs: string[]): string {
  const { live } = useDataContext();
  const names = runs.join("\n");
  const now = () => runs.map((run) => live.version(run)).join(" ");
  const [versions, setVersions] = useState(now);
  useEffect(() => {
    const read = () => setVersions(now());
    read();
    return live.subscribe(read);
  }, [live, names]);
  return versions;
}

export interface Loaded<T> {
  /** Last response; it stays available while a newer one for the same address is loading. */
  value: T | null;
  error: Error | null;
  loading: boolean;
  again: () => void;
}

/** Load an address, and reload it whenever its run changes. `null` loads nothing. */
export function useLoad<T>(path: string | null, query: Query = {}, run?: string): Loaded<T> {
  const { source } = useDataContext();
  const version = useVersion(run);
  const [tries, setTries] = useState(0);
  const wanted = path === null ? null : address(path, query);
  const [held, setHeld] = useState<{ wanted: string | null; value: T | null; error: Error | null }>({
    wanted: null,
    value: null,
    error: null,
  });
  const [loading, setLoading] = useState(wanted !== null);
  const queryNow = useRef(query);
  queryNow.current = query;
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    setLoading(true);
    source.get<T>(path, queryNow.current, stop.signal).then(
      (value) => {
        if (stop.signal.aborted) return;
        setHeld({ wanted, value, error: null });
        setLoading(false);
      },
      (error: unknown) => {
        if (stop.signal.aborted) return;
        const failure = error instanceof Error ? error : new Error(String(error));
        setHeld((before) => ({ wanted, value: before.wanted === wanted ? before.value : null, error: failure }));
        setLoading(false);
      },
    );
    return () => stop.abort();
  }, [source, wanted, version, tries]);
  const mine = held.wanted === wanted;
  return {
    value: mine ? held.value : null,
    error: mine ? held.error : null,
    loading: loading || (!mine && wanted !== null),
    again: () => setTries((count) => count + 1),
  };
}

/** Load one address for each run of a list, in parallel; runs that fail are returned in `errors`. */
export function useLoadAll<T>(runs: string[], address: (run: string) => string, query: Query = {}) {
  const { source } = useDataContext();
  const version = useVersions(runs);
  const names = runs.join("\n");
  const words = JSON.stringify(query);
  const [held, setHeld] = useState<{ names: string; values: Map<string, T>; errors: Map<string, string> } | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    void Promise.allSettled(runs.map((run) => source.get<T>(address(run), query, stop.signal))).then((answers) => {
      if (stop.signal.aborted) return;
      const values = new Map<string, T>();
      const errors = new Map<string, string>();
      answers.forEach((answer, at) => {
        const run = runs[at] ?? "";
        if (answer.status === "fulfilled") values.set(run, answer.value);
        else errors.set(run, answer.reason instanceof Error ? answer.reason.message : String(answer.reason));
      });
      setHeld({ names, values, errors });
    });
    return () => stop.abort();
  }, [source, names, words, version]);
  const mine = held?.names === names ? held : null;
  return { values: mine?.values ?? null, errors: mine?.errors ?? new Map<string, string>(), loading: mine === null };
}
