/* Addresses of the interface: a path and its query in one spelling. */
import type { Query } from "./types";

/** Why an answer could not be had, in words for the reader. */
export class SourceError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** `api/…?name=value`, without the names whose value is empty. */
export function address(path: string, query: Query = {}): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") words.set(name, String(value));
  }
  const text = words.toString();
  return text ? `${path}?${text}` : path;
}

/** A path of the interface of segments that are names (of runs, problems): each is escaped. */
export function path(...segments: (string | number)[]): string {
  return ["api", ...segments.map((segment) => encodeURIComponent(String(segment)))].join("/");
}
