/* Addresses of views: hash routes, so that a link to any view works with a server and in an exported page. */
import { useLayoutEffect, useState } from "preact/hooks";

export interface Route {
  /** The segments after `#/`, each unescaped. */
  segments: string[];
  query: Record<string, string>;
}

type Words = Record<string, string | number | undefined | null>;

/** Reads a hash, `#/runs/RUN/episodes?sort=-reward`; escapes that cannot be read stay as they are. */
export function parseHash(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return {
    segments: path.split("/").filter(Boolean).map(unescaped),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** The address of a view; words of the query without a value are left out. */
export function href(segments: (string | number)[], query: Words = {}): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") words.set(name, String(value));
  }
  const text = words.toString();
  return `#/${segments.map((segment) => encodeURIComponent(String(segment))).join("/")}${text ? `?${text}` : ""}`;
}

/** Goes to a view; with `replace`, going back skips the present one. */
export function go(to: string, replace = false): void {
  if (replace) {
    history.replaceState(null, "", to);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = to;
}

/** Changes words of the present view's query. */
export function setQuery(words: Words, replace = true): void {
  const { segments, query } = parseHash(location.hash);
  go(href(segments, { ...query, ...words }), replace);
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

/** The values of a pattern such as `runs/:run/groups/:step/:group`, if the segments have its form. */
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
