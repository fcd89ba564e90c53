/* The words of selectors and samplers, in sentences: why an episode does not train, what the numbers mean that it was
   chosen by, and what each part does. */

export const REASONS: Record<string, string> = {
  unavailable: "It failed for reasons outside the policy.",
  cancelled: "Its group had enough episodes, or its step did not wait for it.",
  tail: "It had ended, but its step did not wait for the rest of its group.",
  equal: "All rewards of its group are equal, so there is nothing to compare.",
  rejected: "The selector rejected its group.",
  quota: "There was no room for its kind.",
  penalty: "Right answers with fewer tool errors and a cleaner format were preferred.",
  draw: "Others of its side were drawn.",
  unselected: "The selector chose others, and does not say why.",
  no_tokens: "The policy wrote nothing in it.",
  band: "The pass rate of its group is outside of the band.",
  deviation: "The rewards of its group differ too little for the time being.",
  few: "Too few episodes of its group count.",
  alone: "Too few episodes of its group are left for the advantage.",
  surplus: "The last round of refill found more groups than were missing.",
};

export const NUMBERS: Record<string, string> = {
  penalty: "Share of failed calls and format penalty together, from 0 to 2",
  tool_errors: "Share of its calls that failed; 0.5 without a call",
  format: "1 without a marked answer, else a share for every answer beyond the first",
  quota: "How many of its side (right or wrong) train",
  chance: "Its chance in the first draw from its side",
  pass_rate: "Share of right answers in the group",
  low: "Lowest pass rate that trains",
  high: "Highest pass rate that trains",
  deviation: "Standard deviation of the group's rewards",
  threshold: "Smallest deviation that trains at this step",
  counted: "Episodes of the group that count",
  least: "Smallest number of episodes that must count",
};

/** Names of numbers, as heads of columns. */
export const LABELS: Record<string, string> = {
  tool_errors: "Tool errors",
  pass_rate: "Pass rate",
};

/** What each selector does, in short; its options and papers are in `rstar2 parts selector`. */
export const SELECTORS: Record<string, string> = {
  roc: "Resample-on-Correct: of the episodes played, as many right and wrong ones train as their shares say, at least a minimum of each. Right ones with a low penalty are preferred, wrong ones are drawn alike. A group of equal rewards is rejected.",
  all: "The first episodes that count train, as many as there is room for.",
  balanced_band: "A group trains when its pass rate is in a band; within it, another selector chooses.",
  deviation: "A group trains when its rewards differ enough, compared with the groups of late; within it, another selector chooses.",
  minimum_group: "A group trains when enough of its episodes count; within it, another selector chooses.",
  quality_ties: "A group that is all right trains on its cleanest and its least clean episodes; in others, another selector chooses.",
};

/** What each sampler does, in short; its options and papers are in `rstar2 parts sampler`. */
export const SAMPLERS: Record<string, string> = {
  uniform: "Every problem comes once before any comes again.",
  curriculum: "Levels of difficulty, each until enough of it is solved.",
  stages: "One kind of problem after the other, each for so many steps.",
  dump: "Kinds of problems, drawn by how much they teach and how seldom they came.",
  skill_gap: "Kinds of problems, drawn by how much of each is not solved yet.",
  mopps: "Predicts how hard each problem is, and plays those of middling difficulty.",
  difficulty_pool: "Problems weigh by how their last group went: hard, normal or easy.",
  hard_focus: "All problems at first, then fewer and fewer of the hardest.",
  potential: "Problems by what they can teach, in stages.",
  unsolved: "Leaves out the problems that are always solved.",
};

/** Where the documentation tells more. */
export const PAGES: Record<string, string> = {
  roc: "docs/grpo-roc.md",
  quality_ties: "docs/grpo-roc.md",
};

export function label(name: string): string {
  return LABELS[name] ?? name.charAt(0).toUpperCase() + name.slice(1);
}
