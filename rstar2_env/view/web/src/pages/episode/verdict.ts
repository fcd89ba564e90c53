/* Why an answer was graded as it was, in words: the reasons of docs/verification.md. */
import type { VerdictOfLine } from "../../data/types";
import { visible } from "../../format";

/** They hold for puzzles too, where many answers are right. */
const WORDS = new Map([
  ["equal", "the answer is right"],
  ["different", "the answer was read and is not right"],
  ["no_answer", "there is no answer in it"],
  ["unparsable_answer", "the answer could not be read"],
  ["unparsable_gold", "the right answer could not be read"],
  ["timeout", "the comparison took too long"],
  ["too_large", "the answer is too large to compare"],
  ["unavailable", "no verifier was available"],
]);

/** The reason, and how the verifier found it: "the answer is right (number)". */
export function verdictWords(verdict: VerdictOfLine): string {
  const words = WORDS.get(verdict.reason) ?? visible(verdict.reason).replaceAll("_", " ");
  return verdict.method ? `${words} (${visible(verdict.method).replaceAll("_", " ")})` : words;
}
