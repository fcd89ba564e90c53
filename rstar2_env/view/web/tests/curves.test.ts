/* Curves of the overview: what is smoothed, and the range of an axis. */
import { describe, expect, it } from "vitest";
import { lines, marksOf } from "../src/pages/overview/curves";
import { Placement } from "../src/pages/overview/x-axis";
import { bounds } from "../src/plots/bounds";
import { eventsAt } from "../src/plots/marks";

const VALUES = new Map([["r", { steps: [0, 50, 100], series: { "eval/pass_rate": [0.2, 0.5, 0.9], loss: [4, 2, 0] }, marks: [{ step: 50, events: ["evaluation"] }] }]]);

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

describe("events of several runs", () => {
  const metrics = (marks: { step: number; events: string[] }[]) => ({ steps: [0, 50, 100], series: { loss: [4, 2, 0] }, marks });
  const values = new Map([
    ["a-0", metrics([{ step: 50, events: ["evaluation"] }])],
    ["a-1", metrics([{ step: 50, events: ["checkpoint", "evaluation"] }])],
    ["b", metrics([{ step: 50, events: ["note"] }, { step: 100, events: ["evaluation"] }])],
  ]);
  const placed = new Map([...values].flatMap(([run, one]): [string, Placement][] => {
    const place = Placement.of(one, "step");
    return place ? [[run, place]] : [];
  }));
  const sets = [{ label: "a", runs: ["a-0", "a-1"] }, { label: "b", runs: ["b"] }];

  it("are those of each line, in its colour", () => {
    expect(marksOf(sets, values, placed)).toEqual([
      { x: 50, events: ["evaluation", "checkpoint"], label: "a", color: 0 },
      { x: 50, events: ["note"], label: "b", color: 1 },
      { x: 100, events: ["evaluation"], label: "b", color: 1 },
    ]);
    expect(marksOf(sets.slice(1), values, placed)[0]).toEqual({ x: 50, events: ["note"] });
  });

  it("are told with the line's name", () => {
    const marks = marksOf(sets, values, placed);
    expect(eventsAt(marks, 50)).toBe("a: evaluation, checkpoint; b: note");
    expect(eventsAt(marks, 0)).toBe("");
    expect(eventsAt(marksOf(sets.slice(1), values, placed), 100)).toBe("evaluation");
  });
});
