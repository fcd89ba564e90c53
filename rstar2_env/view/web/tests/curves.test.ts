/* Curves of the overview: what is smoothed, and the range of an axis. */
import { describe, expect, it } from "vitest";
import { lines } from "../src/pages/overview/curves";
import { bounds } from "../src/plots/bounds";

const VALUES = new Map([["r", { steps: [0, 50, 100], series: { "eval/pass_rate": [0.2, 0.5, 0.9], loss: [4, 2, 0] } }]]);

function drawn(name: string) {
  return lines([{ name, label: name, color: 0 }], [{ label: "r", runs: ["r"] }], VALUES, { how: "range", weight: 0.9 });
}

describe("curves", () => {
  it("leave held-out figures as they were measured", () => {
    expect(drawn("eval/pass_rate")[0]?.y).toEqual([0.2, 0.5, 0.9]);
  });
  it("smooth other figures, and keep their values", () => {
    expect(drawn("loss")[0]?.y).not.toEqual([4, 2, 0]);
    expect(drawn("loss")[0]?.raw).toEqual([4, 2, 0]);
  });
});

describe("the range of an axis", () => {
  it("keeps shares between 0 and 1", () => {
    expect(bounds(1, 1, true)).toEqual([0.99, 1]);
    expect(bounds(0, 0, true)).toEqual([0, 0.01]);
    expect(bounds(0, 1, true)).toEqual([0, 1]);
  });
  it("gives a constant a small range", () => {
    expect(bounds(50, 50, false)).toEqual([45, 55]);
    expect(bounds(-1, 1, false)[0]).toBeCloseTo(-1.16);
  });
});
