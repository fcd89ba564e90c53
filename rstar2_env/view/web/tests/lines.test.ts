import { expect, it } from "vitest";
import type { RunRow } from "../src/data/types";
import { common, sets } from "../src/pages/overview/curves";
import { aligned, shares, smooth, spread, stacked, thinned } from "../src/plots/lines";

it("smooths without a bias towards zero at the beginning, and leaves gaps", () => {
  expect(smooth([2, 2, null, 2], 0.9)).toEqual([2, expect.closeTo(2), null, expect.closeTo(2)]);
  expect(smooth([0, 1], 0.5)).toEqual([0, expect.closeTo(2 / 3)]);
  expect(smooth([1, 5], 0)).toEqual([1, 5]);
});

it("draws the mean over seeds with their range or one deviation, at every step that any has", () => {
  const runs = [
    { x: [1, 2], y: [0, 2] },
    { x: [1, 3], y: [4, 6] },
  ];
  expect(spread(runs, "range")).toEqual({ x: [1, 2, 3], y: [2, 2, 6], low: [0, 2, 6], high: [4, 2, 6] });
  const { low, high } = spread(runs, "deviation");
  expect(low[0]).toBeCloseTo(2 - Math.sqrt(8));
  expect(high[0]).toBeCloseTo(2 + Math.sqrt(8));
});

it("puts series on one axis", () => {
  expect(aligned([{ x: [3, 1], y: [30, 10] }, { x: [2], y: [null] }])).toEqual({ x: [1, 2, 3], columns: [[10, null, 30], [null, null, null]] });
});

it("lays areas on one another, as shares of their sum", () => {
  expect(stacked([[1, null], [2, 3]])).toEqual([[1, 0], [3, 3]]);
  expect(shares([[1, 0], [3, 0]])).toEqual([[0.25, null], [0.75, null]]);
});

it("thins rows evenly, the last one included", () => {
  expect(thinned(3, 5)).toEqual([0, 1, 2]);
  expect(thinned(101, 3)).toEqual([0, 50, 100]);
});

const row = (run: string, group: string) => ({ run, name: run, group }) as RunRow;

it("draws runs of one configuration as one line, unless each is wanted", () => {
  const rows = [row("roc-seed0", "g"), row("roc-seed1", "g"), row("grpo", "h")];
  expect(sets(rows, "range")).toEqual([
    { label: "roc (2 seeds)", runs: ["roc-seed0", "roc-seed1"] },
    { label: "grpo", runs: ["grpo"] },
  ]);
  expect(sets(rows, "each").map((set) => set.label)).toEqual(["roc-seed0", "roc-seed1", "grpo"]);
});

it("names runs by what their names have in common", () => {
  expect(common(["a/roc-s1", "a/roc-s2"])).toBe("a/roc");
  expect(common(["one", "two"])).toBe("one");
});
