/* Addresses of views: hash routes, so links to views work with a server and in an exported page. */
import { useLayoutEffect, useState } from "preact/hooks";

export interface Route {
  /** The segments after `#/`, each unescaped. */
  segments: string[];
  query: Record<string, string>;
}

type Words = Record<string, string | number | undefined | null>;

/** Parse a hash, `#/runs/RUN/episodes?sort=-reward`; invalid escapes are left unchanged. */
export function parseHash(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return {
    segments: path.split("/").filter(Boolean).map(unescaped),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** Return the address of a view; empty values of the query are omitted. */
export function href(segments: (string | number)[], query: Words = {}): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") words.set(name, String(value));
  }
  const text = words.toString();
  return `#/${segments.map((segment) => encodeURIComponent(String(segment))).join("/")}${text ? `?${text}` : ""}`;
}

/** Navigate to a view; with `replace`, the current view is removed from the history. */
export function go(to: string, replace = false): void {
  if (replace) {
    history.replaceState(null, "", to);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = to;
}

/** Change values in the query of the current view. */
export function setQuery(words: Words, replace = true): void {
  const { segments, query } = parseHash(location.hash);
  go(href(segments, { ...query, ...words }), replace);
}

/** The run of a view; of two compared sides, the run that both have in common; empty if there is none. */
export function runOf({ segments, query }: Route): string {
  if (segments[0] === "runs") return segments[1] ?? "";
  const [a, b] = [query["a"] ?? "", query["b"] ?? ""].map((side) => (segments[0] === "pair" ? side.slice(0, Math.max(0, side.lastIndexOf("/"))) : side));
  return a && a === b ? a : "";
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseHash(location.hash));
  useLayoutEffect(() => {
    const read = () => setRoute(parseHash(location.hash));
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  return route;
}

/** Match segments with a pattern such as `runs/:run/groups/:step/:group`; return the values, or null. */
export function match(pattern: string, segments: string[]): Record<string, string> | null {
  const parts = pattern.split("/").filter(Boolean);
  if (parts.length !== segments.length) return null;
  const found: Record<string, string> = {};
  for (const [at, part] of parts.entries()) {
    const segment = segments[at] ?? "";
    if (part.startsWith(":")) found[part.slice(1)] = segment;
    else if (part !== segment) return null;
  }
  return found;
}

function unescaped(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
