/* Descriptions of the reasons of grades, from docs/verification.md. */
import type { VerdictOfLine } from "../../data/types";
import { visible } from "../../format";

/** The wording also fits puzzles, where several answers are correct. */
const WORDS = new Map([
  ["equal", "the answer is correct"],
  ["different", "the answer is wrong"],
  ["no_answer", "there is no answer"],
  ["unparsable_answer", "the answer could not be parsed"],
  ["unparsable_gold", "the gold answer could not be parsed"],
  ["timeout", "the comparison took too long"],
  ["too_large", "the answer is too large to compare"],
  ["unavailable", "no verifier was available"],
]);

/** Reason and method of a grade: "the answer is correct (number)". */
export function verdictWords(verdict: VerdictOfLine): string {
  const words = WORDS.get(verdict.reason) ?? visible(verdict.reason).replaceAll("_", " ");
  return verdict.method ? `${words} (${visible(verdict.method).replaceAll("_", " ")})` : words;
}
