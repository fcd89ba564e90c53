/* The nodes of a formatted text, and what the script that makes them offers to the page. */

export interface WrittenMath {
  /** The formula without its marks, and with them. */
  tex: string;
  raw: string;
  display: boolean;
}

export type TextNode =
  | { kind: "text" | "code" | "block"; text: string }
  | { kind: "paragraph" | "heading" | "strong" | "em" | "del" | "blockquote"; children: TextNode[] }
  | { kind: "list"; ordered: boolean; items: { number: number | null; children: TextNode[] }[] }
  | { kind: "table"; head: TextNode[][]; rows: TextNode[][][] }
  | { kind: "rule" | "break" }
  | ({ kind: "math" } & WrittenMath);

export interface Formatter {
  markdown(text: string): TextNode[] | null;
  mathematics(text: string): TextNode[];
  /** The element of a formula; null if it cannot be read. */
  formula(tex: string, display: boolean): Element | null;
}

declare global {
  interface Window {
    rstar2Formatter?: Formatter;
  }
}
