import { expect, it } from "vitest";
import type { Metrics } from "../src/data/types";
import { seedSentences } from "../src/pages/overview/seeds";

function run(steps: number[], rates: (number | null)[]): Metrics {
  return { steps, series: { "eval/pass_rate": rates }, marks: [] } as unknown as Metrics;
}

it("compares seeds at the last step that all of them have evaluated", () => {
  const values = new Map([["a", run([0, 4, 8, 12], [0.1, 0.5, 0.75, 0.9])], ["b", run([0, 4, 8], [0.2, 0.3, 0.65])]]);
  expect(seedSentences([{ label: "roc (2 seeds)", runs: ["a", "b"] }, { label: "c", runs: ["a"] }], values)).toEqual([
    "roc (2 seeds): held-out success at step 8 is 70.0% on average, from 65.0% to 75.0%, so the seeds differ by 10 points.",
  ]);
});

it("says nothing of seeds that have no evaluated step in common", () => {
  const values = new Map([["a", run([0, 4], [0.1, 0.5])], ["b", run([4, 8], [null, 0.65])]]);
  expect(seedSentences([{ label: "roc", runs: ["a", "b"] }], values)).toEqual([]);
});
