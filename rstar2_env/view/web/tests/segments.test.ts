import { describe, expect, it } from "vitest";
import { levels, lookOf } from "../src/pages/episode/token-scale";
import { segments } from "../src/pages/episode/segments";
import cases from "./segments.json";

const kinds = (text: string, role = "assistant") => segments(text, role).map((part) => part.kind);

describe("a turn's text", () => {
  it.each(cases)("has the segments of the terminal: $text", ({ text, role, segments: expected }) => {
    expect(segments(text, role).map(({ raw: _, ...part }) => part)).toEqual(expected);
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
