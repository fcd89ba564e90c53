/* Types of the API responses about groups, the sampler, problems and the comparison of two runs. */
import type { Counts, EpisodeRow, Numbers } from "./types";

/** Values used by a selector, by name; docs/trainers.md lists them. */
export type Weighed = Record<string, number | null>;

export interface GroupRow {
  split: "train" | "eval";
  step: number;
  round: number;
  group: number;
  problem_id: string;
  task: string;
  question: string;
  played: number;
  kept: number | null;
  success: number | null;
  kept_success: number | null;
  mean_reward: number | null;
  tool_error_share: number | null;
  kept_tool_error_share: number | null;
  rejected: boolean;
  reasons: Counts;
  ends: Counts;
  /** One letter per episode: `C` correct and kept, `c` correct and dropped, `W` and `w` wrong, `x` not counted. */
  marks: string;
}

export interface GroupEpisode extends EpisodeRow {
  weighed?: Weighed;
  copies?: number;
  parent?: [number, number] | null;
  answer_tags?: number;
}

export interface Selector {
  name: string;
  options: Record<string, unknown>;
  summary?: string;
}

export interface GroupDetail extends GroupRow {
  selector?: Selector | null;
  quotas: { right: { played: number; kept: number }; wrong: { played: number; kept: number } };
  neighbours: { previous: number[] | null; next: number[] | null };
  episodes: GroupEpisode[];
}

export interface HardProblem {
  problem_id: string;
  task?: string;
  question: string;
  success: number | null;
  seen: number;
  last_step: number | null;
}

export interface Sampler {
  name: string;
  options: Record<string, unknown>;
  summary?: string;
  steps: number[];
  groups: { all_right: number[]; mixed: number[]; all_wrong: number[] };
  /** Numbers of seen problems that were never, sometimes or always solved in their last group. */
  counts: { steps: number[]; hard: number[]; middle: number[]; easy: number[] };
  success: Numbers;
  new_problems: number[];
  refilled: number[];
  seen: number;
  hardest: HardProblem[];
  states: { step: number; file: string; state: unknown; note?: string | null }[];
}

export interface ProblemRow {
  problem_id: string;
  task: string;
  source: string;
  difficulty: string | null;
  question: string;
  seen: number;
  success: number | null;
  reward: number | null;
  tool_error_share: number | null;
  tokens: number | null;
  trend: number[];
  last_step: number | null;
}

export interface ProblemDetail extends Omit<ProblemRow, "success"> {
  gold: string | null;
  /** Share of correct answers over all episodes. */
  rate: number | null;
  steps: number[];
  /** Share of correct answers at each step. */
  success: Numbers;
  count: number[];
  episodes: EpisodeRow[];
}

export interface Side {
  success: number | null;
  n: number;
  tokens: number | null;
  tool_error_share: number | null;
  reward: number | null;
  /** Keys of the run's episodes of this problem, newest first. */
  keys: string[];
}

export interface CompareRow {
  problem_id: string;
  question: string;
  task: string;
  a: Side;
  b: Side;
  /** Success of b minus success of a; null if a run has no counted episodes. */
  difference: number | null;
}

export interface CompareFigures {
  problems: number;
  a: number | null;
  b: number | null;
  difference: number | null;
  low: number | null;
  high: number | null;
  p: number | null;
  gained: number;
  lost: number;
  same: number;
  /** Number of the compared problems with only one counted episode on a side. */
  single: number;
  only_a: number;
  only_b: number;
}

export interface ComparePage {
  total: number;
  split: "train" | "eval";
  steps: (number | null)[];
  figures: CompareFigures;
  rows: CompareRow[];
}
