import { describe, expect, it } from "vitest";
import { sharedPrompt } from "../src/pages/episodes/columns";
import { levels, lookOf } from "../src/pages/episode/token-scale";
import { segments } from "../src/pages/episode/segments";

const kinds = (text: string, role = "assistant") => segments(text, role).map((part) => part.kind);

describe("a turn's text", () => {
  it("has its call's code apart from the JSON around it", () => {
    const text = 'Let us see.\n<tool_call>\n{"name": "python", "arguments": {"code": "print(1)\\nx", "input": "", "n": 2}}\n</tool_call>';
    const [said, call] = segments(text, "assistant");
    expect(said).toMatchObject({ kind: "text" });
    expect(call).toMatchObject({ kind: "call", name: "python", text: "print(1)\nx", language: "python", more: '{\n  "n": 2\n}' });
  });

  it("shows a call that is not well formed as it was written", () => {
    expect(segments("<tool_call>{oops</tool_call>", "assistant")).toMatchObject([{ kind: "call", text: "{oops", language: "text" }]);
    expect(segments('<tool_call>"x"</tool_call>', "assistant")).toMatchObject([{ kind: "call", language: "json" }]);
  });

  it("tells fences, thoughts, answers and results apart", () => {
    expect(kinds("<think>a</think>\n```python\nb\n```\n<answer>c</answer>")).toEqual(["think", "code", "answer"]);
    expect(segments("```Python\nb\n```", "assistant")[0]).toMatchObject({ language: "python", text: "b" });
    expect(kinds("<tool_response>\n7\n</tool_response>", "user")).toEqual(["output"]);
    expect(kinds("<tool_call>{}</tool_call>", "user")).toEqual(["text"]);
  });

  it("loses no character", () => {
    const text = "a<think>b</think>```\nc\n``` <answer>d <tool_call> e";
    expect(segments(text, "assistant").map((part) => part.raw).join("")).toBe(text);
  });

  it("is read once, however many marks are never closed", () => {
    const text = "<tool_call>".repeat(50_000) + "<think>".repeat(50_000);
    expect(kinds(text)).toEqual(["text"]);
  });
});

it("names a token's level by the figure that it is coloured by", () => {
  const token = { text: "a", id: 1, mask: 1, logprob: Math.log(0.3), advantage: -1, ratio: 1.3 };
  const look = (figure: "logprob" | "advantage" | "ratio", of = token) => lookOf(of, figure, levels(figure, [token]));
  expect(look("logprob")).toBe("t-s2");
  expect(look("ratio")).toBe("t-p2");
  expect(look("advantage")).toBe("t-n2");
  expect(look("advantage", { ...token, advantage: 0 })).toBe("t-zero");
  expect(look("advantage", { ...token, advantage: -0.2 })).toBe("t-n1");
  expect(look("advantage", { ...token, advantage: 0.2 })).toBe("t-p1");
  expect(look("logprob", { ...token, mask: 0 })).toBe("t-env");
  expect(lookOf({ ...token, ratio: null }, "ratio", levels("ratio", []))).toBe("t-none");
});

it("finds the prompt that problems share, in whole sentences", () => {
  expect(sharedPrompt(["Solve the problem: What is 1?", "Solve the problem: What is 2?", "Solve the problem: What was 3?"])).toBe("Solve the problem: ".length);
  expect(sharedPrompt(["What is 1?", "What is 2?", "What is 3?"])).toBe(0);
  expect(sharedPrompt(["one problem alone, said twice", "one problem alone, said twice"])).toBe(0);
});
