import { expect, it } from "vitest";
import type { RunRow } from "../src/data/types";
import { cautions, inWords } from "../src/pages/compare/compare-page";
import { heldSteps } from "../src/pages/compare/compare-steps";
import { nothingShared, placesOf, type Sides, stepOptions, swappedSides, wholeLabel, whenOf } from "../src/pages/compare/sides";

it("says that sides whose difference rounds to no points are the same", () => {
  const said = (difference: number | null) =>
    inWords({ figures: { difference, low: -0.1, high: 0.1, gained: 1, lost: 2 } as Parameters<typeof inWords>[0]["figures"] }, ["in a", "in b"]);
  expect([0.0004, -0.0004, 0].map(said)).toEqual(Array(3).fill("Success is the same in b as in a: 1 problem gained, 2 lost."));
  expect(said(0.0006)).toBe("Success is 0.1 points higher in b than in a, which may be due to chance: 1 problem gained, 2 lost.");
  expect(said(-0.05)).toBe("Success is 5 points lower in b than in a, which may be due to chance: 1 problem gained, 2 lost.");
});

it("compares, in an export, the first with the last step of each split", () => {
  const steps = { eval: [0, 4, 8], train: [1, 2, 8] };
  const splits = ["eval", "train"];
  expect(heldSteps(steps, {})).toEqual({ splits, split: "eval", steps: { a_step: "0", b_step: "8" } });
  expect(heldSteps(steps, { split: "train", a_step: "1" })).toEqual({ splits, split: "train", steps: { a_step: "1", b_step: "8" } });
  expect(heldSteps({ eval: [8], train: [1, 8] }, { split: "eval" })).toEqual({ splits: ["train"], split: "train", steps: { a_step: "1", b_step: "8" } });
  expect(heldSteps({ eval: [8], train: [] }, { split: "eval" })).toBeNull();
});

it("swaps, in an export, the two steps of the chosen split", () => {
  const steps = { eval: [0, 4, 8], train: [1, 2, 8] };
  expect(heldSteps(steps, { a_step: "8", b_step: "0" })?.steps).toEqual({ a_step: "8", b_step: "0" });
  expect(heldSteps(steps, { split: "train", a_step: "8", b_step: "0" })?.steps).toEqual({ a_step: "1", b_step: "8" });
});

it("swaps the shown sides, with the steps that the address leaves out", () => {
  expect(swappedSides({ a: "x", b: "y", a_step: "3" }, null)).toEqual({ a: "y", b: "x", a_step: "", b_step: "3" });
  expect(swappedSides({ a: "x", b: "x" }, null)).toBeNull();
  expect(swappedSides({ a: "x", b: "x" }, { a: "x", b: "x", a_step: "0", b_step: "8" })).toEqual({ a: "x", b: "x", a_step: "8", b_step: "0" });
  expect(swappedSides({ a: "x", b: "x", a_step: "2" }, { a: "y", b: "y", a_step: "0", b_step: "8" })).toEqual({ a: "x", b: "x", a_step: "", b_step: "2" });
});

const run = (name: string, kind: RunRow["kind"] = "training") => ({ run: name, name, kind, episodes: { train: 9, eval: 9 } }) as RunRow;
const [A, B, E] = [run("a"), run("b"), run("e", "evaluation")];
const sides = (a: RunRow, b: RunRow, known: Sides["known"], split = "eval"): Sides => ({ a, b, known, split });

it("names the steps of two runs in the sentence if they differ", () => {
  const places = (a: RunRow, b: RunRow, steps: (number | null)[], split = "eval") => placesOf({ a, b }, whenOf({ a, b, split }, steps));
  expect(places(A, B, [0, 140])).toEqual(["in a after step 0", "in b after step 140"]);
  expect(places(A, B, [140, 140])).toEqual(["in a", "in b"]);
  expect(places(A, A, [0, 140])).toEqual(["after step 0", "after step 140"]);
  expect(places(A, E, [8, 0])).toEqual(["in a after step 8", "in e"]);
  expect(places(A, B, [null, 3], "train")).toEqual(["in a over all steps", "in b after step 3"]);
  expect(places(A, B, [null, null], "train")).toEqual(["in a", "in b"]);
});

it("offers only steps with episodes, and names the default", () => {
  const offered = stepOptions([0, 20], "40", "eval", "the last").filter((option) => !("disabled" in option));
  expect(offered.map(({ label }) => label)).toEqual(["the last", "0", "20"]);
  expect(stepOptions([0, 20], "40", "eval", "the last")[1]).toEqual({ value: "40", label: "40 (not evaluated)", disabled: true });
  expect(stepOptions([0, 20], "20", "eval", "the last")).toHaveLength(3);
  expect(wholeLabel(sides(A, B, [[0, 4, 8], [0, 4]]))).toBe("the last of both");
  expect(wholeLabel(sides(A, B, [[0, 8], [0, 4]]))).toBe("the last");
  expect(wholeLabel(sides(A, A, [[0, 8], [0, 8]]))).toBe("the last");
  expect(wholeLabel(sides(A, B, [[1], [1]], "train"))).toBe("all steps");
});

it("leads from steps without episodes to the nearest ones with episodes", () => {
  const steps = [0, 38, 115, 140];
  expect(nothingShared(sides(A, A, [steps, steps]), [40, 120], 0)).toEqual({
    says: "There is no evaluation after step 40 or after step 120.",
    ways: [{ label: "Compare steps 38 and 115", query: { a_step: "38", b_step: "115" } }],
  });
  expect(nothingShared(sides(A, A, [steps, steps]), [40, 41], 0).ways[0]?.label).toBe("Compare steps 0 and 140");
  expect(nothingShared(sides(A, B, [[0, 8], [4, 8]]), [3, 3], 0)).toEqual({
    says: "There is no evaluation in a after step 3 or in b after step 3.",
    ways: [{ label: "Compare both after step 8", query: { a_step: "8", b_step: "8" } }],
  });
  expect(nothingShared(sides(A, B, [[0, 8], [4, 9]]), [0, 5], 0)).toEqual({
    says: "There is no evaluation in b after step 5.",
    ways: [{ label: "Compare steps 0 and 4", query: { a_step: "0", b_step: "4" } }],
  });
  expect(nothingShared(sides(A, A, [[], []]), [40, 120], 0).ways).toEqual([]);
});

it("says that sides with episodes share no problems, and leads from training to the evaluations", () => {
  const played: Sides["known"] = [[1, 8], [1, 8]];
  const heldOut = { label: "Compare the held-out evaluations", query: { split: "eval", a_step: null, b_step: null } };
  expect(nothingShared(sides(A, A, played, "train"), [1, 8], 0)).toEqual({ says: "These steps share no problems in this split.", ways: [heldOut] });
  expect(nothingShared(sides(A, B, played), [8, 8], 0)).toEqual({ says: "The two sides share no problems in this split.", ways: [] });
  expect(nothingShared(sides(A, A, played), [1, 8], 3).says).toBe("No problem has counted episodes both after step 1 and after step 8.");
});

it("warns of changes of problems with one sample", () => {
  expect(cautions({ single: 3, problems: 3, same: 1 })).toEqual(["Problems with only one sample on a side may be gained or lost by chance: judge by the difference over all problems."]);
  expect(cautions({ single: 1, problems: 3, same: 1 })).toEqual(["1 of 3 problems has one sample on a side and may be gained or lost by chance."]);
  expect([cautions({ single: 0, problems: 3, same: 1 }), cautions({ single: 3, problems: 3, same: 3 })]).toEqual([[], []]);
});
