/* The run that the head of a page leads back to. */
import { expect, it } from "vitest";
import { parseHash, runOf } from "../src/shell/router";

it.each([
  ["#/runs/roc/episodes", "roc"],
  ["#/compare?a=roc&b=roc&a_step=0", "roc"],
  ["#/compare?a=roc&b=grpo", ""],
  ["#/compare", ""],
  ["#/pair?a=roc/train-1-0&b=roc/train-1-1", "roc"],
  ["#/pair?a=roc/train-1-0&b=grpo/train-1-0", ""],
  ["#/overview?runs=roc", ""],
])("is that of a view, or the one that both of its sides have: %s", (hash, run) => {
  expect(runOf(parseHash(hash))).toBe(run);
});
