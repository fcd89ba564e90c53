/* Descriptions of selectors and samplers: the reasons for dropping an episode, the values used by selectors, and the
   parts themselves. */
import { percent } from "../../format";

export const REASONS: Record<string, string> = {
  unavailable: "The episode failed for reasons unrelated to the policy.",
  cancelled: "The group already had enough episodes, or the step did not wait for this one.",
  tail: "The episode finished, but the step did not wait for the rest of its group.",
  equal: "All rewards of the group are equal, so there is nothing to compare.",
  rejected: "The selector rejected the group.",
  quota: "The quota of correct or wrong episodes was full.",
  penalty: "Failed calls or the format made other correct episodes more likely to be kept.",
  order: "An earlier episode with the same penalty was kept.",
  draw: "Other episodes that were no more likely to be kept were drawn.",
  unselected: "The selector chose other episodes and does not give a reason.",
  no_tokens: "The policy generated no tokens.",
  band: "The pass rate of the group is outside the band.",
  deviation: "The rewards of the group currently differ too little.",
  few: "Too few episodes of the group count.",
  alone: "Too few episodes of the group are left to compute the advantage.",
  surplus: "The last refill round produced more groups than needed.",
};

export const NUMBERS: Record<string, string> = {
  penalty: "Sum of the share of failed calls and the format penalty, from 0 to 2",
  tool_errors: "Share of failed calls; 0.5 if there are no calls",
  format: "1 without a marked answer, else a penalty for every answer beyond the first",
  quota: "Number of correct (or wrong) episodes to keep",
  chance: "Probability in the first draw among correct (or wrong) episodes",
  pass_rate: "Share of correct answers in the group",
  low: "Lowest accepted pass rate",
  high: "Highest accepted pass rate",
  deviation: "Standard deviation of the group's rewards",
  threshold: "Minimum deviation at this step",
  counted: "Number of counted episodes in the group",
  least: "Required number of counted episodes",
};

/** Column headings of the values. */
export const LABELS: Record<string, string> = {
  tool_errors: "Tool errors",
  pass_rate: "Pass rate",
};

/** Short descriptions of the selectors; `rstar2 list parts selector` lists options and papers. */
export const SELECTORS: Record<string, string> = {
  roc: "Resample-on-Correct: keeps correct and wrong episodes in proportion to their shares, with a minimum of each. Correct episodes with a low penalty are preferred; wrong episodes are drawn uniformly. Groups with equal rewards are rejected.",
  all: "Keeps the first counted episodes, up to the group size.",
  balanced_band: "Accepts groups whose pass rate is in a band; another selector chooses their episodes.",
  deviation: "Accepts groups whose rewards differ enough compared with recent groups; another selector chooses their episodes.",
  minimum_group: "Accepts groups with enough counted episodes; another selector chooses their episodes.",
  quality_ties: "In all-correct groups, keeps the cleanest and the least clean episodes; in other groups, another selector chooses.",
};

/** Short descriptions of the samplers; `rstar2 list parts sampler` lists options and papers. */
export const SAMPLERS: Record<string, string> = {
  uniform: "Draws every problem once before repeating any.",
  curriculum: "Levels of difficulty; advances when enough of a level is solved.",
  stages: "Kinds of problems in sequence, each for a number of steps.",
  dump: "Draws kinds of problems by their learning signal and by how rarely they were drawn.",
  skill_gap: "Draws kinds of problems by their unsolved share.",
  mopps: "Predicts the difficulty of each problem, and draws those of medium difficulty.",
  difficulty_pool: "Weights problems by the result of their last group: hard, normal or easy.",
  hard_focus: "All problems at first, then a shrinking set of the hardest.",
  potential: "Draws problems by their learning potential, in stages.",
  unsolved: "Skips problems that are always solved.",
};

/** Documentation pages with more information. */
export const PAGES: Record<string, string> = {
  roc: "docs/grpo-roc.md",
  quality_ties: "docs/grpo-roc.md",
};

/** Why one episode was dropped, in a sentence, with the number that decided. */
export function whyDropped(reason: string, weighed: Partial<Record<string, number | null>> | null | undefined): string {
  const why = REASONS[reason] ?? "The selector gave a reason of its own.";
  const chance = weighed?.["chance"];
  if (chance === undefined || chance === null || (reason !== "draw" && reason !== "penalty")) return why;
  return `${why} Its chance in the first draw was ${percent(chance)}.`;
}

export function label(name: string): string {
  return LABELS[name] ?? name.charAt(0).toUpperCase() + name.slice(1);
}
