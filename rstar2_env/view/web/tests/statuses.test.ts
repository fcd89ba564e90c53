import { expect, it } from "vitest";
import { failures } from "../src/pages/overview/statuses";

it("shows failed calls as shares of the calls that were not unavailable, the most frequent status first", () => {
  const lines = failures([1, 2], { ok: [50, 1], timeout: [5, 0], exception: [20, 1], unavailable: [25, 2] });
  expect(lines.map(({ label, y }) => [label, y])).toEqual([
    ["exception", [20 / 75, 0.5]],
    ["timeout", [5 / 75, 0]],
  ]);
});

it("writes the name of a status without control characters", () => {
  expect(failures([1], { ok: [1], "bad\u202e": [1] })[0]?.label).toBe("bad⟨U+202E⟩");
});
