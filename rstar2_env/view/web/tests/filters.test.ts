import { expect, it } from "vitest";
import { optionsOf, withError } from "../src/pages/episodes/filters";

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

it("offers the most frequent values of the chosen split, and the chosen value", () => {
  const frequent = Array.from({ length: 40 }, (_, at) => ({ value: `trained ${at}`, count: 9, splits: { train: 9 } }));
  const rare = Array.from({ length: 50 }, (_, at) => ({ value: `held out ${at}`, count: 1 + at / 100, splits: { eval: 1 + at / 100 } }));
  const offered = (query: Record<string, string>) => optionsOf([...frequent, ...rare], "task", query).map(({ value }) => value);
  expect(offered({})).toEqual(frequent.map(({ value }) => value));
  expect(offered({ split: "eval" })).toEqual(rare.slice(10).reverse().map(({ value }) => value));
  expect(offered({ split: "eval", task: "held out 3" })).toEqual([...offered({ split: "eval" }), "held out 3"]);
});

it("offers 'any error' where a status occurs or it is chosen", () => {
  const ok = { value: "ok", label: "ok (4)" };
  const failed = { value: "error", label: "any error" };
  expect(withError([ok], undefined)).toEqual([failed, ok]);
  expect(withError([], undefined)).toEqual([]);
  expect(withError([], "ok")).toEqual([]);
  expect(withError([], "error")).toEqual([failed]);
});
