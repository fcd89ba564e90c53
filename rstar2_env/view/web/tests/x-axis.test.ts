/* The x axis of the curves: what a run had used at each step. */
import { describe, expect, it } from "vitest";
import { CARDS, repeated } from "../src/pages/overview/cards";
import { Placement, positions } from "../src/pages/overview/x-axis";

const METRICS = {
  steps: [0, 1, 2, 3],
  series: {
    "eval/pass_rate": [0.1, null, null, 0.4],
    "seconds/rollout": [null, 10, 12, 14],
    "seconds/train": [null, 5, 6, 7],
    "tokens/computed": [null, 100, 300, 50],
  },
  marks: [],
};

describe("the x axis", () => {
  it("adds up the tokens, and the parts of the time of each step", () => {
    expect(positions(METRICS, "step")).toEqual([0, 1, 2, 3]);
    expect(positions(METRICS, "tokens")).toEqual([0, 100, 400, 450]);
    expect(positions(METRICS, "time")).toEqual([0, 15, 33, 54]);
  });
  it("counts only the wait for episodes that are played ahead", () => {
    const ahead = { ...METRICS, series: { ...METRICS.series, "seconds/wait": [null, 3, null, 1] } };
    expect(positions(ahead, "time")).toEqual([0, 8, 26, 34]);
  });
  it("does not exist for a run that records nothing for it", () => {
    expect(positions({ steps: [1], series: { loss: [1] }, marks: [] }, "tokens")).toBeNull();
    expect(Placement.of({ steps: [1], series: { loss: [1] }, marks: [] }, "time")).toBeNull();
  });
  it("leads from a step to a position and back", () => {
    const place = Placement.of(METRICS, "tokens");
    expect([0, 1, 3].map((step) => place?.x(step))).toEqual([0, 100, 450]);
    expect([0, 100, 450].map((x) => place?.step(x))).toEqual([0, 1, 3]);
    expect(place?.marks([{ step: 2, events: ["note"] }])).toEqual([{ x: 400, events: ["note"] }]);
  });
});

describe("a card that repeats another", () => {
  const reward = CARDS.find((card) => card.title === "Reward");
  const series = { "eval/pass_rate": [0.5, null], "eval/reward": [0.5, null], "rollout/pass_rate": [0, 1], "rollout/reward": [0, 1] };
  const runs = [{ steps: [0, 1], series, marks: [] }];
  const names = new Set(Object.keys(series));
  it("has only curves of the other one", () => {
    expect(reward && repeated(reward, names, runs)).toBe(true);
  });
  it("does not repeat it if a curve of any run differs", () => {
    const other = { steps: [0, 1], series: { ...series, "rollout/reward": [0, 0.9] }, marks: [] };
    expect(reward && repeated(reward, names, [...runs, other])).toBe(false);
  });
});
