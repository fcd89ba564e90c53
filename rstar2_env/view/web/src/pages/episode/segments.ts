/* Splits a turn into calls, code, answers and results by the markup of the dialects, for display only; nothing is graded.
   The terminal has the same rules in view/terminal/segments.py; both pass the cases of tests/segments.json. */
import { SEGMENTS } from "../../words";

export interface Segment {
  kind: "text" | "call" | "code" | "think" | "answer" | "output";
  /** Original text, including the markup. */
  raw: string;
  /** Text inside the markup. */
  text: string;
  language: string;
  /** For a call: the name of the tool, and its other arguments as JSON. */
  name: string;
  more: string;
}

interface Mark {
  kind: Segment["kind"];
  open: string;
  close: string;
}

const POLICY = SEGMENTS.policy as Mark[];
const SHOWN = SEGMENTS.shown as Mark[];

/** Split a message into segments; joining their `raw` gives the text. */
export function segments(text: string, role: string): Segment[] {
  const marks = role === "assistant" ? POLICY : SHOWN;
  const found: Segment[] = [];
  // Next position of each mark; Infinity if there is none, so a text with many unclosed marks is scanned only once.
  const next = marks.map((mark) => at(text, mark.open, 0));
  const closed = marks.map(() => true);
  let start = 0;
  while (start < text.length) {
    let best = -1;
    for (let index = 0; index < marks.length; index++) {
      const mark = marks[index];
      if (!mark || !closed[index]) continue;
      if ((next[index] ?? 0) < start) next[index] = at(text, mark.open, start);
      if ((next[index] ?? Infinity) < (next[best] ?? Infinity)) best = index;
    }
    const mark = marks[best];
    const begin = next[best] ?? Infinity;
    if (!mark || begin === Infinity) break;
    const stop = at(text, mark.close, begin + mark.open.length);
    if (stop === Infinity) {
      closed[best] = false;
      continue;
    }
    const end = stop + mark.close.length;
    if (begin > start) found.push(plain(text.slice(start, begin)));
    found.push(marked(mark.kind, text.slice(begin, end), text.slice(begin + mark.open.length, stop)));
    start = end;
  }
  if (start < text.length) found.push(plain(text.slice(start)));
  return found.filter((segment) => segment.kind !== "text" || segment.text.trim());
}

function at(text: string, word: string, from: number): number {
  const found = text.indexOf(word, from);
  return found < 0 ? Infinity : found;
}

function plain(raw: string): Segment {
  return { kind: "text", raw, text: raw, language: "", name: "", more: "" };
}

function marked(kind: Segment["kind"], raw: string, inside: string): Segment {
  const segment = { ...plain(raw), kind, text: trimmed(inside) };
  if (kind === "code") {
    const [, language = "", text = ""] = /^([\w+-]*)[ \t]*\n?([\s\S]*)$/.exec(inside) ?? [];
    return { ...segment, language: language.toLowerCase() || "text", text: trimmed(text) };
  }
  return kind === "call" ? call(segment) : segment;
}

/** Separate the code of a call from its JSON. A malformed call is left unchanged. */
function call(segment: Segment): Segment {
  try {
    const written = JSON.parse(segment.text) as { name?: unknown; arguments?: unknown };
    const given = written.arguments;
    const name = String(written.name ?? "");
    if (typeof given !== "object" || given === null) return { ...segment, language: "json", name };
    const { code, ...rest } = given as Record<string, unknown>;
    const more = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== "" && value !== null));
    const others = Object.keys(more).length ? JSON.stringify(more, null, 2) : "";
    if (typeof code === "string") return { ...segment, language: "python", name, text: code, more: others };
    return { ...segment, language: "json", name, text: JSON.stringify(given, null, 2) };
  } catch {
    return { ...segment, language: "text" };
  }
}

function trimmed(text: string): string {
  return text.replace(/^\n+|\s+$/g, "");
}
