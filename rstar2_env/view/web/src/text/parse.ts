/* Markdown and mathematics of a message, as nodes of which the page makes elements: nothing is ever parsed as HTML. */
import { Marked, type Token, type Tokens } from "marked";
import type { TextNode } from "./nodes";
import { mathAt } from "./math-marks";

/** Maximum nesting depth; a text that is nested more deeply is shown unformatted. */
const MOST_DEPTH = 24;

const reader = new Marked({
  gfm: true,
  breaks: true,
  extensions: [
    { name: "math", level: "inline", start: (text) => startOfMath(text), tokenizer: (text) => mathToken(text) },
    { name: "math", level: "block", tokenizer: (text) => (/^(\$\$|\\\[|\\begin)/.test(text) ? wholeLine(mathToken(text), text) : undefined) },
  ],
  tokenizer: {
    // `[a]: b` would vanish from the text.
    def: () => undefined,
    // Products such as 2*3*4 are not emphasis, which begins only after a space or an opening bracket.
    emStrong: (_text, _masked, before = "") => (before === "" || /[\s([{"'“‘—–-]/.test(before) ? false : undefined),
    // A single tilde means "about", as in ~5: only a double tilde strikes text out.
    del: (text) => (text.startsWith("~~") ? false : undefined),
  },
});

/** Nodes of a Markdown text; null if it is nested too deeply. */
export function markdown(text: string): TextNode[] | null {
  try {
    return nodes(reader.lexer(text), 0);
  } catch {
    return null;
  }
}

/** Nodes of a text that is not Markdown: its formulas, and everything else unchanged. */
export function mathematics(text: string): TextNode[] {
  const found: TextNode[] = [];
  let [start, at] = [0, 0];
  const plain = (end: number) => end > start && found.push({ kind: "text", text: text.slice(start, end) });
  while (at < text.length) {
    const next = startOfMath(text.slice(at));
    if (next === undefined) break;
    at += next;
    const math = mathAt(text.slice(at));
    if (!math) {
      at++;
      continue;
    }
    plain(at);
    found.push({ kind: "math", ...math });
    start = at += math.raw.length;
  }
  plain(text.length);
  return found;
}

function startOfMath(text: string): number | undefined {
  const at = text.search(/\$|\\\(|\\\[|\\boxed|\\begin/);
  return at < 0 ? undefined : at;
}

function mathToken(text: string): (Tokens.Generic & { type: string; raw: string }) | undefined {
  const math = mathAt(text);
  return math ? { type: "math", ...math } : undefined;
}

/** A formula that fills a line; a formula within a line is part of a paragraph. */
function wholeLine<T extends { raw: string }>(token: T | undefined, text: string): T | undefined {
  return token && /^[ \t.,;]*(\n|$)/.test(text.slice(token.raw.length)) ? token : undefined;
}

function nodes(tokens: Token[] | undefined, depth: number): TextNode[] {
  if (depth > MOST_DEPTH) throw new Error("nested too deeply");
  return (tokens ?? []).flatMap((token): TextNode[] => node(token, depth + 1));
}

function node(token: Token, depth: number): TextNode[] {
  const inside = () => nodes((token as Tokens.Generic).tokens, depth);
  switch (token.type) {
    case "space":
      return [];
    case "math":
      return [{ kind: "math", tex: String(token["tex"]), raw: token.raw, display: Boolean(token["display"]) }];
    case "paragraph":
      return [{ kind: "paragraph", children: inside() }];
    case "heading":
      // A line of signs without a word, such as a wall of a board, is not a heading.
      return token["text"] ? [{ kind: "heading", children: inside() }] : written(token);
    case "strong":
    case "em":
    case "del":
    case "blockquote":
      return [{ kind: token.type, children: inside() }];
    case "list":
      return [list(token as Tokens.List, depth)];
    case "table":
      return [table(token as Tokens.Table, depth)];
    case "code":
      return [{ kind: "block", text: String(token["text"]) }];
    case "codespan":
      return [{ kind: "code", text: String(token["text"]) }];
    case "hr":
      return [{ kind: "rule" }];
    case "br":
      return [{ kind: "break" }];
    case "link":
      return link(token as Tokens.Link, depth);
    case "escape":
      return [{ kind: "text", text: String(token["text"]) }];
    case "text":
      return (token as Tokens.Text).tokens ? inside() : [{ kind: "text", text: String(token["text"]) }];
    default:
      // Everything else, such as HTML and images, is shown as text.
      return "block" in token && token["block"] ? written(token) : [{ kind: "text", text: token.raw }];
  }
}

function written(token: Token): TextNode[] {
  return [{ kind: "paragraph", children: [{ kind: "text", text: token.raw.replace(/\n+$/, "") }] }];
}

/** The text of a link, and its address as plain text, since a model may write any address. */
function link(token: Tokens.Link, depth: number): TextNode[] {
  if (token.raw.startsWith("[") && token.href !== token.text) {
    return [...nodes(token.tokens, depth), { kind: "text", text: ` (${token.href})` }];
  }
  return [{ kind: "text", text: token.raw }];
}

function list(token: Tokens.List, depth: number): TextNode {
  const items = token.items.map((item) => {
    const number = token.ordered ? Number(/^\s*(\d+)/.exec(item.raw)?.[1] ?? "") : null;
    const box: TextNode[] = item.task ? [{ kind: "text", text: item.checked ? "☑ " : "☐ " }] : [];
    return { number, children: [...box, ...nodes(item.tokens.filter((one) => one.type !== "checkbox"), depth)] };
  });
  return { kind: "list", ordered: token.ordered, items };
}

function table(token: Tokens.Table, depth: number): TextNode {
  const cells = (row: Tokens.TableCell[]) => row.map((cell) => nodes(cell.tokens, depth));
  return { kind: "table", head: cells(token.header), rows: token.rows.map(cells) };
}
