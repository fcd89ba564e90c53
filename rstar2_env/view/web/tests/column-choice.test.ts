import { expect, it } from "vitest";
import { chosenColumns, moved } from "../src/ui/column-choice";

const COLUMNS = ["key", "reward", "turns"].map((name) => ({ name, label: name }));

it("shows chosen columns in their order, and always the first, which leads to the row", () => {
  const shown = (...names: string[]) => chosenColumns(COLUMNS, names).map((column) => column.name);
  expect(shown("turns", "key", "reward")).toEqual(["turns", "key", "reward"]);
  expect(shown("turns", "gone", "turns")).toEqual(["key", "turns"]);
});

it("moves a column within the list", () => {
  expect(moved(["a", "b", "c"], "b", 1)).toEqual(["a", "c", "b"]);
  expect(moved(["a", "b", "c"], "b", -1)).toEqual(["b", "a", "c"]);
  expect(moved(["a", "b", "c"], "c", 1)).toEqual(["a", "b", "c"]);
});

it("gives the list itself if nothing moves, so that nothing is stored", () => {
  const names = ["a", "b", "c"];
  expect([moved(names, "a", -1), moved(names, "c", 1)].every((one) => one === names)).toBe(true);
  expect(moved(names, "b", 1)).not.toBe(names);
});
