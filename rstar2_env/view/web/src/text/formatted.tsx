/* A text with its Markdown and mathematics, made of elements; as it was written until the formatter is there. */
import { useMemo } from "preact/hooks";
import { visible } from "../format";
import { useFormatter } from "./load";
import type { Formatter, WrittenMath, TextNode } from "./nodes";

/** How a text is formatted: a policy writes Markdown; the layout of other texts, such as boards, has a meaning. */
export type Format = "markdown" | "mathematics";

/** Maximum length; longer texts are shown unformatted. */
const MOST_FORMATTED = 20_000;

export function Formatted({ text, format }: { text: string; format: Format }) {
  const wanted = text.length <= MOST_FORMATTED && /[$\\*_`#~|>-]|\d[.)]/.test(text);
  const formatter = useFormatter(wanted);
  const nodes = useMemo(() => (wanted && formatter ? formatter[format](text) : null), [text, format, wanted, formatter]);
  if (!nodes || !formatter || format === "mathematics") {
    return (
      <p class="text" dir="auto">
        {nodes && formatter ? <Nodes nodes={nodes} formatter={formatter} /> : visible(text)}
      </p>
    );
  }
  return (
    <div class="text formatted" dir="auto">
      <Nodes nodes={nodes} formatter={formatter} />
    </div>
  );
}

function Nodes({ nodes, formatter }: { nodes: TextNode[]; formatter: Formatter }) {
  return (
    <>
      {nodes.map((node, at) => (
        <One key={at} node={node} formatter={formatter} />
      ))}
    </>
  );
}

function One({ node, formatter }: { node: TextNode; formatter: Formatter }) {
  const inside = (children: TextNode[]) => <Nodes nodes={children} formatter={formatter} />;
  switch (node.kind) {
    case "text":
      return <>{visible(node.text)}</>;
    case "code":
      return <code>{visible(node.text)}</code>;
    case "block":
      return <pre class="formatted-code">{visible(node.text)}</pre>;
    case "paragraph":
      return <p>{inside(node.children)}</p>;
    case "heading":
      return <p class="formatted-heading">{inside(node.children)}</p>;
    case "strong":
      return <strong>{inside(node.children)}</strong>;
    case "em":
      return <em>{inside(node.children)}</em>;
    case "del":
      return <del>{inside(node.children)}</del>;
    case "blockquote":
      return <blockquote>{inside(node.children)}</blockquote>;
    case "list": {
      const items = node.items.map(({ number, children }, at) => (
        <li key={at} {...(number === null ? {} : { value: number })}>
          {inside(children)}
        </li>
      ));
      return node.ordered ? <ol>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return (
        <div class="scroll-x" tabIndex={0} role="region" aria-label="Table in the message">
          <table class="plain-table">
            <thead>
              <tr>
                {node.head.map((cell, at) => (
                  <th scope="col" key={at}>
                    {inside(cell)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {node.rows.map((row, at) => (
                <tr key={at}>
                  {row.map((cell, nth) => (
                    <td key={nth}>{inside(cell)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "rule":
      return <hr />;
    case "break":
      return <br />;
    case "math":
      return <Formula math={node} formatter={formatter} />;
  }
}

function Formula({ math, formatter }: { math: WrittenMath; formatter: Formatter }) {
  const element = useMemo(() => formatter.formula(math.tex, math.display), [math.tex, math.display, formatter]);
  if (!element) return <>{visible(math.raw)}</>;
  const put = (node: HTMLElement | null) => node?.replaceChildren(element);
  return math.display ? <span class="formula display" tabIndex={0} ref={put} /> : <span class="formula" ref={put} />;
}
