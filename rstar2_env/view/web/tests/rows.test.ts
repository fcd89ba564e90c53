import { describe, expect, it } from "vitest";
import { order, type Row, searched, select, within, wordsOf } from "../src/data/rows";

const ROWS: Row[] = [
  { key: "train-1-0", split: "train", step: 1, reward: 1, correct: true, kept: true, end: "answered", statuses: { ok: 2 }, last_status: "timeout", after_error: "", injected: {}, problem_id: "p1", question: "Add 1" },
  { key: "train-1-1", split: "train", step: 1, reward: 0, correct: false, kept: false, end: "turns", statuses: { exception: 1, ok: 1 }, last_status: "ok", after_error: "ok", injected: { timeout: 1 }, problem_id: "p1", question: "Add 1" },
  { key: "train-7-0", split: "train", step: 7, reward: 0.5, correct: false, kept: true, end: "answered", statuses: { unavailable: 1 }, last_status: "unavailable", after_error: "", injected: {}, problem_id: "p2", question: "Divide" },
  { key: "eval-0-0", split: "eval", step: 0, reward: null, correct: null, kept: null, end: "", statuses: {}, last_status: "", after_error: "", injected: {}, problem_id: "p3", question: "Multiply" },
];
const text = (row: Row) => wordsOf(`${row["question"]} said by ${row["key"]}`);
const keys = (query: Record<string, string | number>) => select(ROWS, query, text).rows.map((row) => row["key"]);

describe("filters", () => {
  it("take a plain value, or several between commas", () => {
    expect(keys({ split: "eval" })).toEqual(["eval-0-0"]);
    expect(keys({ end: "answered,turns" })).toHaveLength(3);
    expect(keys({ problem: "p1" })).toEqual(["train-1-0", "train-1-1"]);
    expect(keys({ problem_q: "DIV" })).toEqual(["train-7-0"]);
  });

  it("tell what is wrong from what was never graded", () => {
    expect(keys({ correct: "0" })).toEqual(["train-1-1", "train-7-0"]);
    expect(keys({ correct: "1" })).toEqual(["train-1-0"]);
    expect(keys({ kept: "0" })).toEqual(["train-1-1"]);
  });

  it("find calls by status, and count no infrastructure failure as an error", () => {
    expect(keys({ status: "error" })).toEqual(["train-1-1"]);
    expect(keys({ status: "unavailable" })).toEqual(["train-7-0"]);
    expect(keys({ last: "error" })).toEqual(["train-1-0"]);
    expect(keys({ last: "unavailable,ok" })).toEqual(["train-1-1", "train-7-0"]);
    expect(keys({ after_error: "ok" })).toEqual(["train-1-1"]);
    expect(keys({ injected: "1" })).toEqual(["train-1-1"]);
    expect(keys({ injected: "timeout" })).toEqual(["train-1-1"]);
    expect(keys({ injected: "memory" })).toEqual([]);
  });

  it("bound numbers, and pass no row without one", () => {
    expect(keys({ min_reward: 0.5 })).toEqual(["train-1-0", "train-7-0"]);
    expect(keys({ max_reward: 0.5 })).toEqual(["train-1-1", "train-7-0"]);
    expect(keys({ step: "2-9" })).toEqual(["train-7-0"]);
  });

  it("search words and phrases in any order, all of them", () => {
    expect(keys({ q: "train-1 add" })).toEqual(["train-1-0", "train-1-1"]);
    expect(keys({ q: '"said by eval"' })).toEqual(["eval-0-0"]);
    expect(keys({ q: "divi*" })).toEqual(["train-7-0"]);
    expect(keys({ q: "add divide" })).toEqual([]);
    expect(searched('a "b c"  D* ++ "')).toEqual(["\0a\0", "\0b\0c\0", "\0d"]);
  });

  it("search whole words as the server does, whatever their case, accents and signs", () => {
    expect(keys({ q: "divi" })).toEqual([]);
    expect(keys({ q: "train" })).toHaveLength(3);
    expect(wordsOf("Été(x_1)=½\ue000!")).toBe("\0ete\0x_1\0½\ue000\0");
  });
});

it("reads ranges of steps", () => {
  const passing = (range: string) => [1, 3, 9, 10].filter((step) => within(step, range));
  expect(passing("3")).toEqual([3]);
  expect(passing("3-9")).toEqual([3, 9]);
  expect(passing("9-")).toEqual([9, 10]);
  expect(passing("-3")).toEqual([1, 3]);
  expect(passing("x")).toEqual([1, 3, 9, 10]);
});

it("orders by a column either way, and what is missing comes last in both", () => {
  expect(keys({ sort: "reward" })).toEqual(["train-1-1", "train-7-0", "train-1-0", "eval-0-0"]);
  expect(keys({ sort: "-reward" })).toEqual(["train-1-0", "train-7-0", "train-1-1", "eval-0-0"]);
  expect(order("a")({ a: { success: 0.5, n: 9 } }, { a: { success: 1, n: 1 } })).toBeLessThan(0);
  expect(order("statuses")({ statuses: { ok: 9 } }, { statuses: { timeout: 1 } })).toBeLessThan(0);
});

it("counts before it cuts the window", () => {
  const page = select(ROWS, { offset: 1, limit: 2 }, text);
  expect(page.total).toBe(4);
  expect(page.rows.map((row) => row["key"])).toEqual(["train-1-1", "train-7-0"]);
});
