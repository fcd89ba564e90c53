/* A list of any length; only the visible blocks are loaded. */
import { useEffect, useRef, useState } from "preact/hooks";
import { address } from "../data/address";
import { useDataContext, useVersion } from "../data/hooks";
import type { Page, Query } from "../data/types";

export const BLOCK = 100;
const MOST_BLOCKS = 60;

export interface Windowed<Row> {
  /** Identity of the list: its address with filters and order. */
  list: string;
  /** Total number of rows; null before the first block is loaded. */
  total: number | null;
  row: (index: number) => Row | undefined;
  /** Report the visible rows; their blocks are loaded. */
  show: (first: number, last: number) => void;
  error: Error | null;
  loading: boolean;
  /** Whether the server is still indexing the run. */
  partial: boolean;
  again: () => void;
}

interface Held<Row> {
  key: string;
  total: number | null;
  blocks: Map<number, Row[]>;
  asked: Set<number>;
  partial: boolean;
}

/** Rows of a list of the API, by query (filters and sort order, without paging). */
export function useWindowed<Row>(path: string, query: Query, run?: string): Windowed<Row> {
  const { source } = useDataContext();
  const version = useVersion(run);
  const [tries, setTries] = useState(0);
  const [, render] = useState(0);
  const [error, setError] = useState<Error | null>(null);
  const list = address(path, query);
  const key = `${list} ${version} ${tries}`;
  const held = useRef<Held<Row>>({ key: "", total: null, blocks: new Map(), asked: new Set(), partial: false });
  const view = useRef<[number, number]>([0, 0]);
  const stop = useRef<AbortController | null>(null);
  const listNow = useRef("");

  const load = (block: number) => {
    const mine = held.current;
    if (mine.asked.has(block)) return;
    mine.asked.add(block);
    const signal = stop.current?.signal;
    source.get<Page<Row>>(path, { ...query, offset: block * BLOCK, limit: BLOCK }, signal).then(
      (page) => {
        if (held.current !== mine) return;
        mine.total = page.total;
        mine.partial = page.partial ?? false;
        mine.blocks.set(block, page.rows);
        trim(mine, view.current);
        setError(null);
        render((turn) => turn + 1);
      },
      (reason: unknown) => {
        if (held.current !== mine || signal?.aborted) return;
        // The block is not requested again automatically, or an unreachable server would be polled forever.
        setError(reason instanceof Error ? reason : new Error(String(reason)));
      },
    );
  };

  useEffect(() => {
    stop.current?.abort();
    stop.current = new AbortController();
    const before = held.current;
    const same = listNow.current === list;
    listNow.current = list;
    // The old rows of the same list stay visible until the new ones are loaded.
    held.current = {
      key,
      total: same ? before.total : null,
      blocks: same ? new Map(before.blocks) : new Map(),
      asked: new Set(),
      partial: before.partial,
    };
    if (!same) view.current = [0, 0];
    setError(null);
    render((turn) => turn + 1);
    const [first, last] = view.current;
    for (let block = Math.floor(first / BLOCK); block <= Math.floor(last / BLOCK); block++) load(block);
  }, [key, source]);
  useEffect(() => () => stop.current?.abort(), []);

  return {
    list,
    total: held.current.total,
    row: (index) => held.current.blocks.get(Math.floor(index / BLOCK))?.[index % BLOCK],
    show: (first, last) => {
      view.current = [first, last];
      if (held.current.key !== key) return;
      const end = held.current.total === null ? 0 : Math.floor(Math.min(last, held.current.total - 1) / BLOCK);
      for (let block = Math.floor(first / BLOCK); block <= end; block++) load(block);
    },
    error,
    loading: held.current.total === null && error === null,
    partial: held.current.partial,
    again: () => setTries((count) => count + 1),
  };
}

/** Discard the blocks farthest from the visible rows if there are many. */
function trim<Row>(held: Held<Row>, [first, last]: [number, number]): void {
  const middle = (first + last) / 2 / BLOCK;
  while (held.blocks.size > MOST_BLOCKS) {
    const far = [...held.blocks.keys()].sort((a, b) => Math.abs(b - middle) - Math.abs(a - middle))[0];
    if (far === undefined) return;
    held.blocks.delete(far);
    held.asked.delete(far);
  }
}
