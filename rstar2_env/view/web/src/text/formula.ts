/* The MathML element of a formula: only listed elements and attributes, without styles, links or handlers. */
import temml from "temml";
import { visible } from "../format";

const NAMESPACE = "http://www.w3.org/1998/Math/MathML";
const ELEMENTS = new Set(
  "math mrow mi mn mo ms mtext mspace mfrac msqrt mroot mstyle msub msup msubsup munder mover munderover mmultiscripts mprescripts none mtable mtr mtd mpadded mphantom menclose".split(" "),
);
const ATTRIBUTES = new Set(
  "display displaystyle scriptlevel mathvariant stretchy fence separator lspace rspace minsize maxsize symmetric largeop movablelimits accent accentunder linethickness width height depth voffset columnalign rowspacing columnspacing columnlines rowlines rowspan columnspan form notation".split(" "),
);
/** Classes of temml that the page's style sheet defines. */
const CLASSES = /^tml-[a-z]+$|^menclose$/;
/** Bounds of macros and of sizes, in em. */
const MOST_EXPANDED = 200;
const MOST_SIZE: [number, number] = [40, 40];

/** The mark between a function and its argument, which temml adds and a reader must not see. */
const APPLIED = "\u2061";

/** The text of an element of a formula, with visible control characters; `\char` may name any of them. */
export function shown(text: string): string {
  return text === APPLIED ? text : visible(text);
}

export function formula(tex: string, display: boolean): Element | null {
  try {
    const holder = document.createElement("span");
    temml.render(tex, holder, { displayMode: display, throwOnError: true, trust: false, maxExpand: MOST_EXPANDED, maxSize: MOST_SIZE, macros: {} });
    const made = holder.firstElementChild;
    return made && copied(made);
  } catch {
    return null;
  }
}

function copied(from: Element): Element | null {
  if (from.namespaceURI !== NAMESPACE || !ELEMENTS.has(from.localName)) return null;
  const to = document.createElementNS(NAMESPACE, from.localName);
  for (const { name, value } of from.attributes) if (ATTRIBUTES.has(name)) to.setAttribute(name, value);
  const classes = [...from.classList].filter((name) => CLASSES.test(name));
  if (classes.length) to.setAttribute("class", classes.join(" "));
  for (const child of from.childNodes) {
    if (child instanceof Element) {
      const kept = copied(child);
      if (kept) to.append(kept);
    } else if (child instanceof Text) to.append(shown(child.data));
  }
  return to;
}
