/* Names of a run's files are shown without control characters, which could change the direction of a page's text. */
import { expect, it } from "vitest";
import type { EpisodeRow, RunRow } from "../src/data/types";
import { columnsOf } from "../src/pages/episodes/columns";
import { sets } from "../src/pages/overview/curves";
import { partLabel } from "../src/pages/overview/ways";
import { Notes } from "../src/ui/states";
import { afterError } from "../src/words";

it("of runs, in the labels of curves and of seeds", () => {
  const rows = [0, 1].map((seed) => ({ run: `r${seed}`, name: `r\u202e-${seed}`, group: "r" }) as RunRow);
  const labels = (some: RunRow[], how: "range" | "each") => sets(some, how).map(({ label }) => label);
  expect(labels(rows, "each")).toEqual(["r⟨U+202E⟩-0", "r⟨U+202E⟩-1"]);
  expect(labels(rows.slice(1), "range")).toEqual(["r⟨U+202E⟩-1"]);
  expect(labels(rows, "range")).toEqual(["r⟨U+202E⟩ (2 seeds)"]);
});

it("of what followed a failed call", () => {
  expect([afterError("failed"), afterError("x\u202e")]).toEqual(["the next call failed too", "x⟨U+202E⟩"]);
  const column = columnsOf(new Set(["after_error"])).find(({ name }) => name === "after_error");
  expect(column?.cell({ after_error: "x\u202e" } as EpisodeRow)).toBe("x⟨U+202E⟩");
});

it("of the kinds of a sentence's episodes", () => {
  expect(partLabel("x\u202e", { reason: "x\u202e" })).toBe("x⟨U+202E⟩");
  expect(partLabel("ok", { status: "ok" })).toBe("ok");
  expect(partLabel("failed", { after_error: "failed" })).toBe("the next call failed too");
});

it("in notes", () => {
  const notes = ["a", "b", "c", "d"].map((name) => `${name}\u202e`);
  const said = JSON.stringify(Notes({ notes }));
  for (const name of ["a", "b", "c", "d"]) expect(said).toContain(`"children":"${name}⟨U+202E⟩"`);
});
