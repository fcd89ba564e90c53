/* Lines of the statuses of calls and the ends of episodes, as shares of their sum at each step. */
import { errors } from "../../data/rows";
import { visible } from "../../format";
import { type Line, shares } from "../../plots/lines";

/** Fixed order, so that a name has the same colour and pattern in every run. */
export const ORDER = {
  statuses: ["ok", "empty", "exception", "syntax_error", "malformed", "timeout", "invalid_arguments", "unknown_tool", "output_limit", "memory", "blocked", "unavailable"],
  after_errors: ["ok", "failed", "answered", "ended"],
  ends: ["answered", "no_answer", "turns", "tokens", "time", "unavailable", "cancelled", "terminated", "truncated"],
};

/** A line for each name, in the given order. */
export function parts(x: number[], counts: Record<string, number[]>, order: string[], label: (name: string) => string): Line[] {
  const names = Object.keys(counts).sort((a, b) => rank(order, a) - rank(order, b) || a.localeCompare(b));
  const columns = shares(names.map((name) => counts[name] ?? []));
  return names.map((name, at) => ({
    id: name,
    label: label(name),
    color: rank(order, name),
    dash: 0,
    x,
    y: columns[at] ?? [],
  }));
}

/** The lines of failed calls alone, the most frequent status first. Unavailable calls do not count, as in the share of tool errors. */
export function failures(x: number[], counts: Record<string, number[]>): Line[] {
  const calls = Object.fromEntries(Object.entries(counts).filter(([name]) => name !== "unavailable"));
  const total = (line: Line) => errors({ [line.id]: (calls[line.id] ?? []).reduce((sum, one) => sum + one, 0) });
  return parts(x, calls, ORDER.statuses, visible).filter((line) => total(line) > 0).sort((a, b) => total(b) - total(a));
}

function rank(order: string[], name: string): number {
  const at = order.indexOf(name);
  return at < 0 ? order.length : at;
}
