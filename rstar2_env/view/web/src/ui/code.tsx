/* Code with syntax highlighting. The highlighter's tree becomes elements with text; HTML is never parsed. */
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import hljs from "highlight.js/lib/core";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import { visible } from "../format";
import { Copy } from "./copy";

hljs.registerLanguage("python", python);
hljs.registerLanguage("json", json);

/** Longer code is not highlighted, which would block the page. */
const MOST_COLOURED = 30_000;

interface Node {
  scope?: string;
  children: (Node | string)[];
}

/** Convert the highlighter's tree to elements. */
export function coloured(text: string, language: string): ComponentChildren {
  if (text.length > MOST_COLOURED || !hljs.getLanguage(language)) return text;
  const result = hljs.highlight(text, { language, ignoreIllegals: true }) as unknown as {
    _emitter: { rootNode: Node };
  };
  return elements(result._emitter.rootNode);
}

function elements(node: Node): ComponentChildren {
  return node.children.map((child, at) => {
    if (typeof child === "string") return child;
    const inside = elements(child);
    return child.scope ? (
      <span key={at} class={`hl-${child.scope.split(".")[0]}`}>
        {inside}
      </span>
    ) : (
      inside
    );
  });
}

export function Code({ text, language, label }: { text: string; language: string; label: string }) {
  const shown = useMemo(() => coloured(visible(text), language), [text, language]);
  return (
    <figure class="code">
      <figcaption>
        <span>{label}</span>
        <Copy text={text} what={label} />
      </figcaption>
      <pre role="group" tabIndex={0} aria-label={label} dir="ltr">
        <code>{shown}</code>
      </pre>
    </figure>
  );
}
