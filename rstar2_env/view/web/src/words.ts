/* The words that page and terminal share: the tables of rstar2_env/view/words. */
import cards from "../../words/cards.json";
import words from "../../words/words.json";
import { visible } from "./format";

type Table = Record<string, string>;

export const CARD_TABLE = cards;
export const COLUMNS = words.columns;
export const FACTS = words.facts;
export const FIGURES = words.figures;
export const GRADED = words.graded;
export const HEALTH = words.health;
export const SPLITS = words.splits;
export const SEGMENTS = words.segments;
export const SEGMENT_LABELS = words.segment_labels;
/** Names of the authors of messages; `problem` is the first message of the environment. */
export const ROLES: Table = words.roles;
/** Reasons of grades, as docs/verification.md explains them. The wording also fits puzzles with several correct answers. */
export const VERDICTS: Table = words.verdicts;
const AFTER_ERROR: Table = words.after_error;
/** What followed the first failed call of an episode, in words; a run's files may contain other names. */
export const afterError = (kind: string): string => AFTER_ERROR[kind] ?? visible(kind);
/** Reasons for dropping an episode. */
export const REASONS: Table = words.reasons;
/** Values used by selectors, and their column headings. */
export const NUMBERS: Table = words.numbers;
export const NUMBER_LABELS: Table = words.number_labels;
/** Short descriptions; `rstar2 list parts` lists options and papers. */
export const SELECTORS: Table = words.selectors;
export const SAMPLERS: Table = words.samplers;
/** Documentation pages with more information. */
export const PAGES: Table = words.pages;

/** Whether an episode was selected for training: `kept`, `dropped: quota`. */
export function selectionWords(kept: boolean | null, reason = ""): string {
  const { kept: yes, dropped: no } = words.selection;
  return kept ? yes : [no, reason].filter(Boolean).join(": ");
}
