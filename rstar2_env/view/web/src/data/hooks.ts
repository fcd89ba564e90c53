/* Hooks for pages: an answer of the source, loaded again when its run changed; the state of following. */
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
  if (!data) throw new Error("A page needs the context of the data.");
  return data;
}

/** The version of a run (of all runs without a name); the component renders again when it grows. */
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

/** The versions of some runs, as one text that changes when any of them did. */
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
  /** The last answer; kept while a newer one of the same address is loaded. */
  value: T | null;
  error: Error | null;
  loading: boolean;
  again: () => void;
}

/** Loads an address, and again whenever its run changed. `null` loads nothing. */
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
        const told = error instanceof Error ? error : new Error(String(error));
        setHeld((before) => ({ wanted, value: before.wanted === wanted ? before.value : null, error: told }));
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

/** Loads one address for each run of a list, side by side; runs that fail are left out and named. */
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
