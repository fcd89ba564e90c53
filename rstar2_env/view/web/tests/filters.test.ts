import { expect, it } from "vitest";
import { optionsOf } from "../src/pages/episodes/filters";

const VALUES = [
  { value: "ok", count: 12, splits: { train: 8, eval: 4 } },
  { value: "timeout", count: 3, splits: { train: 3 } },
];
const labels = (query: Record<string, string>) => optionsOf(VALUES, "status", query).map(({ label }) => label);

it("counts the episodes of an option in the chosen split, which has only the options that occur in it", () => {
  expect(labels({})).toEqual(["ok (12)", "timeout (3)"]);
  expect(labels({ split: "train", sort: "reward" })).toEqual(["ok (8)", "timeout (3)"]);
  expect(labels({ split: "train,eval" })).toEqual(["ok (12)", "timeout (3)"]);
  expect(labels({ split: "eval" })).toEqual(["ok (4)"]);
  expect(labels({ split: "eval", status: "timeout" })).toEqual(["ok (4)", "timeout (0)"]);
});

it("shows no count of an option that other filters would change", () => {
  expect(labels({ split: "train", kept: "0" })).toEqual(["ok", "timeout"]);
  expect(labels({ status: "ok" })).toEqual(["ok (12)", "timeout (3)"]);
});
