/* Links from viewers that were given another folder above the same run. */
import { describe, expect, it } from "vitest";
import { candidates, renamed } from "../src/shell/renamed";
import { href, parseHash } from "../src/shell/router";

const to = (hash: string, known: string[]) => {
  const found = renamed(parseHash(hash), known);
  return found && href(found.segments, found.query);
};

describe("names of runs from another viewer", () => {
  it("are known here without the folders above, or with more of them", () => {
    expect(to("#/runs/demo-grpo_roc/episodes?step=3", ["grpo_roc", "grpo"])).toBe("#/runs/grpo_roc/episodes?step=3");
    expect(to("#/runs/grpo_roc", ["demo-grpo_roc", "demo-grpo"])).toBe("#/runs/demo-grpo_roc");
  });

  it("mean the run whose name they share most with", () => {
    expect(candidates("x-demo-roc", ["roc", "demo-roc"])).toEqual(["demo-roc"]);
  });

  it("are not guessed between several, nor within a word", () => {
    expect(to("#/runs/roc", ["a-roc", "b-roc"])).toBeNull();
    expect(candidates("roc", ["a-roc", "b-roc"])).toEqual(["a-roc", "b-roc"]);
    expect(to("#/runs/demo_roc", ["roc"])).toBeNull();
  });

  it("are replaced wherever an address has them", () => {
    expect(to("#/overview?runs=demo-a,demo-b&smooth=0.5", ["a", "b"])).toBe("#/overview?runs=a%2Cb&smooth=0.5");
    expect(to("#/compare?a=demo-a&b=b", ["a", "b"])).toBe("#/compare?a=a&b=b");
    expect(to("#/pair?a=demo-a/train-1-0&b=b/train-1-1", ["a", "b"])).toBe("#/pair?a=a%2Ftrain-1-0&b=b%2Ftrain-1-1");
  });

  it("stay as they are where they are known", () => {
    expect(to("#/runs/demo-a/groups", ["demo-a", "a"])).toBeNull();
  });
});
