import temml from "temml";
import { describe, expect, it } from "vitest";
import { shown } from "../src/text/formula";
import { mathAt } from "../src/text/math-marks";
import type { TextNode } from "../src/text/nodes";
import { markdown, mathematics } from "../src/text/parse";

/** All text of nodes, formulas with their marks. */
function told(nodes: TextNode[] | null): string {
  return (nodes ?? []).map((node) => {
    if (node.kind === "math") return node.raw;
    if ("text" in node) return node.text;
    if ("children" in node) return told(node.children);
    if (node.kind === "list") return node.items.map((item) => `${item.number ?? ""}${told(item.children)}`).join("\n");
    if (node.kind === "table") return [node.head, ...node.rows].flat().map(told).join("|");
    return "";
  }).join("");
}
const kinds = (nodes: TextNode[] | null) => (nodes ?? []).map((node) => node.kind);
const inside = (text: string) => {
  const [first] = markdown(text) ?? [];
  return first && "children" in first ? first.children : [];
};

describe("formulas", () => {
  it.each([
    ["$x^2$ is", "x^2", false],
    ["$$\nx\n$$", "x", true],
    ["\\(a\\)", "a", false],
    ["\\[a\\]", "a", true],
    ["\\boxed{\\frac{1}{2}} so", "\\boxed{\\frac{1}{2}}", false],
    ["\\begin{align*}a\\end{align*}", "\\begin{align*}a\\end{align*}", true],
  ])("are found by their marks: %s", (text, tex, display) => {
    expect(mathAt(text)).toMatchObject({ tex, display });
  });

  it.each(["$5 and $6", "$5-$6", "$ x$", "$x", "$$ $$", "\\(", "\\boxed{", "\\boxed", "\\boxed{} is graded", `$${"x".repeat(3000)}$`])("are not amounts of money or marks that stay open: %s", (text) => {
    expect(mathAt(text)).toBeNull();
  });

  it("keep their signs, which Markdown would read", () => {
    expect(inside("So $a_1*b*c_2$ and \\(x_i\\)")).toEqual([
      { kind: "text", text: "So " },
      { kind: "math", tex: "a_1*b*c_2", raw: "$a_1*b*c_2$", display: false },
      { kind: "text", text: " and " },
      { kind: "math", tex: "x_i", raw: "\\(x_i\\)", display: false },
    ]);
    expect(kinds(markdown("a\n\n$$\nx\n\ny\n$$\n\nb"))).toEqual(["paragraph", "math", "paragraph"]);
  });
});

describe("Markdown", () => {
  it("is made of elements", () => {
    expect(kinds(markdown("# A\n\nb **c**\n\n- d\n\n> e\n\n---\n\n| a |\n|---|\n| b |\n"))).toEqual(["heading", "paragraph", "list", "blockquote", "rule", "table"]);
    expect(kinds(inside("a **b** _c_ ~~d~~ `e`\nf"))).toEqual(["text", "strong", "text", "em", "text", "del", "text", "code", "break", "text"]);
  });

  it.each(["2*3*4 = 24", "(2)*3*(4)", "~5~ and ~6~", "#####", "[a]: https://example.org", "snake_case_name", "a<b>c</b>"])("leaves other texts as they are: %s", (text) => {
    expect(told(markdown(text))).toBe(text);
  });

  it("keeps the numbers of a list", () => {
    expect(markdown("3. a\n5. b")).toMatchObject([{ kind: "list", ordered: true, items: [{ number: 3 }, { number: 5 }] }]);
    expect(markdown("- [x] a\n- [ ] b")).toMatchObject([{ items: [{ number: null }, { number: null }] }]);
    expect(told(markdown("- [x] a"))).toBe("☑ a");
  });

  it.each([
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "![a](https://example.org/x.png)",
    "[a](javascript:alert(1))",
    "[a](data:text/html,x)",
    "<javascript:alert(1)>",
    "https://example.org",
    "<math><mtext></p><img src=x></mtext></math>",
  ])("makes neither elements nor addresses of what a model wrote: %s", (text) => {
    const words = told(markdown(text));
    for (const word of text.match(/\w+/g) ?? []) expect(words).toContain(word);
    expect(JSON.stringify(markdown(text))).not.toContain('"href"');
  });

  it("gives up on a text that is nested too deeply", () => {
    expect(markdown(`${">".repeat(5000)} a`)).toBeNull();
    expect(markdown(`${">".repeat(10)} a`)).not.toBeNull();
  });

  it.each(["[", "*a ", "_a", "`", "$", "$$", "<a ", "\\(", "- ", "~~", "![", "**a*"])("reads many open signs in little time: %s", { timeout: 60_000 }, (sign) => {
    const text = sign.repeat(20_000 / sign.length);
    const begun = performance.now();
    markdown(text);
    expect(told(mathematics(text))).toBe(text);
    expect(performance.now() - begun).toBeLessThan(20_000);
  });
});

it.each([
  ["\\text{a\u202eb}", ["a⟨U+202E⟩b"]],
  ["\\char\"202E", ["⟨U+202E⟩"]],
  ["\\mathrm{\u2066}", ["⟨U+2066⟩"]],
  ["\\sin x", ["sin", "\u2061", "x"]],
])("shows the control characters of a formula, and not the mark that temml adds: %s", (tex, texts) => {
  const made = temml.renderToString(tex, { throwOnError: true, trust: false });
  expect([...made.matchAll(/>([^<]+)</g)].map(([, text = ""]) => shown(text))).toEqual(texts);
});

it("finds the formulas of a text that is no Markdown, and nothing else", () => {
  const text = "# 1\n  # * $x$ #\n\\boxed{7}. $5";
  expect(told(mathematics(text))).toBe(text);
  expect(kinds(mathematics(text))).toEqual(["text", "math", "text", "math", "text"]);
});
