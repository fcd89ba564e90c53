/* Finds a formula by its marks: $…$, $$…$$, \(…\), \[…\], \boxed{…}, and environments such as align. */
import type { WrittenMath } from "./nodes";

/** Maximum length; longer formulas are shown unformatted. */
const MOST_LENGTH = 2_000;

const MARKS: { pattern: RegExp; display: boolean }[] = [
  { pattern: /^\$\$([\s\S]+?)\$\$/, display: true },
  { pattern: /^\\\[([\s\S]+?)\\\]/, display: true },
  { pattern: /^\\\(([\s\S]+?)\\\)/, display: false },
  // An amount of money is not a formula, which has no space next to its marks, and no digit after them.
  { pattern: /^\$(?![\s$])((?:\\[^\n]|[^\\$\n])*?[^\\$\s])\$(?![\w$])/, display: false },
  { pattern: /^(\\begin\{((?:align|equation|gather)\*?)\}[\s\S]+?\\end\{\2\})/, display: true },
];

/** The formula at the beginning of a text. */
export function mathAt(text: string): WrittenMath | null {
  const near = text.slice(0, MOST_LENGTH);
  for (const { pattern, display } of MARKS) {
    const found = pattern.exec(near);
    if (found?.[1]?.trim()) return { tex: found[1].trim(), raw: found[0], display };
  }
  return near.startsWith("\\boxed{") ? boxed(near) : null;
}

function boxed(text: string): WrittenMath | null {
  let depth = 0;
  for (let at = "\\boxed".length; at < text.length; at++) {
    const sign = text[at];
    if (sign === "\\") at++;
    else if (sign === "{") depth++;
    else if (sign === "}" && --depth === 0) {
      const raw = text.slice(0, at + 1);
      // An empty box, as in a prompt that asks for one, would vanish.
      return raw.slice("\\boxed{".length, -1).trim() ? { tex: raw, raw, display: false } : null;
    }
  }
  return null;
}
