/* Addresses of the API: a path and its query in canonical form. */
import type { Query } from "./types";

/** Error of a request, with a message for the user. */
export class SourceError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** Return `api/…?name=value`, without empty values. */
export function address(path: string, query: Query = {}): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") words.set(name, String(value));
  }
  const text = words.toString();
  return text ? `${path}?${text}` : path;
}

/** Join names (of runs, problems) to a path of the API; each segment is escaped. */
export function path(...segments: (string | number)[]): string {
  return ["api", ...segments.map((segment) => encodeURIComponent(String(segment)))].join("/");
}
