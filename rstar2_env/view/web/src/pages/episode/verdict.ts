/* Reasons of grades in words. */
import type { VerdictOfLine } from "../../data/types";
import { visible } from "../../format";
import { VERDICTS } from "../../words";

/** Reason and method of a grade: "the answer is correct (number)". */
export function verdictWords(verdict: VerdictOfLine): string {
  const words = (Object.hasOwn(VERDICTS, verdict.reason) && VERDICTS[verdict.reason]) || visible(verdict.reason).replaceAll("_", " ");
  return verdict.method ? `${words} (${visible(verdict.method).replaceAll("_", " ")})` : words;
}
