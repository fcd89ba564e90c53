import { expect, it } from "vitest";
import { verdictWords } from "../src/pages/episode/verdict";

it("says in words why an answer was graded so, and how that was found", () => {
  expect(verdictWords({ reason: "equal", method: "number" })).toBe("the answer is correct (number)");
  expect(verdictWords({ reason: "unparsable_answer", method: "knights_knaves" })).toBe("the answer could not be parsed (knights knaves)");
  expect(verdictWords({ reason: "timeout", method: "" })).toBe("the comparison took too long");
});

it("shows a reason of another environment as it is, with control characters made visible", () => {
  expect(verdictWords({ reason: "over_budget\u202e", method: "a\u0007" })).toBe("over budget⟨U+202E⟩ (a␇)");
  expect(verdictWords({ reason: "constructor", method: "" })).toBe("constructor");
});
