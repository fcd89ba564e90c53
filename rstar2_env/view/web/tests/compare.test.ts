import { expect, it } from "vitest";
import { inWords } from "../src/pages/compare/compare-page";
import { heldSteps } from "../src/pages/compare/compare-steps";

it("says that sides whose difference rounds to no points are the same", () => {
  const said = (difference: number | null) =>
    inWords({ figures: { difference, low: -0.1, high: 0.1, gained: 1, lost: 2 } as Parameters<typeof inWords>[0]["figures"] }, ["in a", "in b"]);
  expect([0.0004, -0.0004, 0].map(said)).toEqual(Array(3).fill("Success is the same in b as in a: 1 problem gained, 2 lost."));
  expect(said(0.0006)).toBe("Success is 0.1 points higher in b than in a, which may be due to chance: 1 problem gained, 2 lost.");
  expect(said(null)).toBe("No problem has counted episodes both in a and in b.");
  expect(said(-0.05)).toBe("Success is 5 points lower in b than in a, which may be due to chance: 1 problem gained, 2 lost.");
});

it("compares, in an export, the first with the last step of each split", () => {
  const steps = { eval: [0, 4, 8], train: [1, 2, 8] };
  const splits = ["eval", "train"];
  expect(heldSteps(steps, undefined)).toEqual({ splits, split: "eval", steps: { a_step: "0", b_step: "8" } });
  expect(heldSteps(steps, "train")).toEqual({ splits, split: "train", steps: { a_step: "1", b_step: "8" } });
  expect(heldSteps({ eval: [8], train: [1, 8] }, "eval")).toEqual({ splits: ["train"], split: "train", steps: { a_step: "1", b_step: "8" } });
  expect(heldSteps({ eval: [8], train: [] }, "eval")).toBeNull();
});
