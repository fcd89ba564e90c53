/* The plots of the overview: metrics of each card, their order and number formats. */
import type { Metrics, Numbers } from "../../data/types";
import { number, percent, seconds } from "../../format";

export interface Card {
  title: string;
  section: string;
  help?: string;
  /** Names of metrics with labels; a name that ends in `/` matches all metrics with this prefix. */
  metrics: [string, string][];
  form: (value: number) => string;
  /** Stacked areas, for parts of a whole. */
  stack?: boolean;
  /** Title of a card that has the same curves if one correct answer is the whole reward. */
  repeats?: string;
}

const SUCCESS = "Performance";
const TOOLS = "Tools";
const SHAPE = "Shape of the episodes";
const TRAINS = "Training data";
const OPTIMIZER = "Optimizer";
const TIME = "Time";
/** The card whose metrics are the parts of a step's time. */
export const STEP_TIME = "Time per step, by activity";

export const CARDS: Card[] = [
  {
    title: "Success",
    section: SUCCESS,
    help: "Share of correct answers: held-out problems, all played episodes, and episodes kept for training.",
    metrics: [
      ["eval/pass_rate", "held out"],
      ["rollout/pass_rate", "played"],
      ["kept/pass_rate", "kept"],
    ],
    form: percent,
  },
  {
    title: "Reward",
    section: SUCCESS,
    repeats: "Success",
    help: "Mean reward: held-out problems, all played episodes, and episodes kept for training.",
    metrics: [
      ["eval/reward", "held out"],
      ["rollout/reward", "played"],
      ["kept/reward", "kept"],
    ],
    form: number,
  },
  { title: "Reward components", section: SUCCESS, repeats: "Reward", metrics: [["rollout/reward/", ""]], form: number },
  {
    title: "Tool errors",
    section: TOOLS,
    help: "Share of the policy's calls that fail: in all episodes, in correct episodes, and in episodes kept for training.",
    metrics: [
      ["rollout/tool_error_share", "all episodes"],
      ["rollout/tool_error_share_correct", "correct episodes"],
      ["kept/tool_error_share", "kept episodes"],
    ],
    form: percent,
  },
  {
    title: "Tool errors, held out",
    section: TOOLS,
    metrics: [
      ["eval/tool_error_share", "all episodes"],
      ["eval/tool_error_share_correct", "correct episodes"],
    ],
    form: percent,
  },
  {
    title: "Calls and turns",
    section: SHAPE,
    help: "Means over all played episodes.",
    metrics: [
      ["rollout/turns", "turns"],
      ["rollout/tool_calls", "calls"],
    ],
    form: number,
  },
  {
    title: "Length",
    section: SHAPE,
    help: "Mean number of policy tokens per episode.",
    metrics: [
      ["eval/tokens", "held out"],
      ["rollout/tokens", "played"],
      ["kept/tokens", "kept"],
    ],
    form: number,
  },
  {
    title: "Broken format",
    section: SHAPE,
    help: "Share of episodes that do not mark exactly one answer.",
    metrics: [
      ["eval/broken_format", "held out"],
      ["rollout/broken_format", "played"],
      ["kept/broken_format", "kept"],
    ],
    form: percent,
  },
  {
    title: "Groups rejected",
    section: TRAINS,
    help: "Share of the groups without a training signal.",
    metrics: [["rollout/groups_rejected", "rejected"]],
    form: percent,
  },
  {
    title: "Groups refilled",
    section: TRAINS,
    help: "Numbers of groups that were refilled, replaced, missing, and carried over.",
    metrics: [
      ["rollout/groups_refilled", "refilled"],
      ["rollout/groups_replaced", "replaced"],
      ["rollout/groups_missing", "missing"],
      ["rollout/groups_carried", "carried over"],
    ],
    form: number,
  },
  { title: "Why episodes were dropped", section: TRAINS, help: "Share of all episodes.", metrics: [["dropped/", ""]], form: percent, stack: true },
  {
    title: "Share of tokens used for training",
    section: TRAINS,
    help: "Tokens of rows with an advantage, as a share of all computed tokens including padding.",
    metrics: [["tokens/share_trained", "trained"]],
    form: percent,
  },
  {
    title: "Advantage",
    section: TRAINS,
    help: "Mean absolute advantage of the episodes kept for training.",
    metrics: [["kept/advantage", "advantage"]],
    form: number,
  },
  { title: "Loss", section: OPTIMIZER, metrics: [["loss", "loss"]], form: number },
  { title: "Gradient norm", section: OPTIMIZER, metrics: [["grad_norm", "norm"]], form: number },
  { title: "Learning rate", section: OPTIMIZER, metrics: [["learning_rate", "rate"]], form: number },
  {
    title: "Entropy",
    section: OPTIMIZER,
    help: "In nats per token.",
    metrics: [
      ["policy/entropy", "policy"],
      ["entropy", "loss term"],
    ],
    form: number,
  },
  { title: "KL divergence", section: OPTIMIZER, metrics: [["kl", "KL"]], form: number },
  {
    title: "Probability ratio",
    section: OPTIMIZER,
    metrics: [["policy/ratio", "ratio"]],
    form: number,
  },
  { title: "Clipped", section: OPTIMIZER, metrics: [["clip/", ""]], form: percent },
  {
    title: "Engine against trainer: divergence",
    section: OPTIMIZER,
    help: "Divergence between the distributions of the engine and the trainer; near 0 if both compute alike.",
    metrics: [
      ["mismatch/kl", "KL"],
      ["mismatch/chi2", "chi-squared"],
    ],
    form: number,
  },
  {
    title: "Engine against trainer: log-probabilities",
    section: OPTIMIZER,
    help: "Mean absolute difference of a token's log-probability.",
    metrics: [["mismatch/logp_difference", "difference"]],
    form: number,
  },
  {
    title: "Engine against trainer: correction",
    section: OPTIMIZER,
    help: "Effective share of the tokens, mean weight, and share of tokens of weight 0; 1, 1 and 0 if nothing is corrected.",
    metrics: [
      ["mismatch/ess", "effective share"],
      ["mismatch/weight", "mean weight"],
      ["mismatch/masked", "weight 0"],
    ],
    form: number,
  },
  {
    title: STEP_TIME,
    section: TIME,
    metrics: [
      ["seconds/rollout", "rollout"],
      ["seconds/train", "training"],
      ["seconds/hand_over", "weight sync"],
      ["seconds/reward", "reward"],
      ["seconds/select", "selection"],
      ["seconds/advantage", "advantage"],
      ["seconds/wait", "waiting"],
    ],
    form: seconds,
    stack: true,
  },
  {
    title: "Seconds per episode",
    section: TIME,
    help: "Time in the environment, including tools, and time waiting for the engine.",
    metrics: [
      ["seconds/tool", "tools"],
      ["seconds/engine_wait", "engine"],
    ],
    form: seconds,
  },
  {
    title: "Tokens per second",
    section: TIME,
    metrics: [
      ["speed/train_tokens_per_second", "training"],
      ["speed/generated_tokens_per_second", "generation"],
    ],
    form: number,
  },
];

export interface Metric {
  name: string;
  label: string;
  /** Index of the colour: the position in the card, independent of which metrics a run has. */
  color: number;
}

/** Metrics of a card that exist in at least one run. */
export function present(card: Card, names: Set<string>): Metric[] {
  return card.metrics.flatMap(([name, label], color): Metric[] => {
    if (!name.endsWith("/")) return names.has(name) ? [{ name, label, color }] : [];
    const below = [...names].filter((one) => one.startsWith(name)).sort();
    return below.map((one, at) => ({ name: one, label: one.slice(name.length), color: at }));
  });
}

/** Whether another card has each curve of a card, in each run. */
export function repeated(card: Card, names: Set<string>, runs: Metrics[]): boolean {
  const other = CARDS.find(({ title }) => title === card.repeats);
  if (!other) return false;
  const others = present(other, names);
  return present(card, names).every(({ name }) => others.some((one) => runs.every(({ series }) => same(series[name], series[one.name]))));
}

function same(a: Numbers | undefined, b: Numbers | undefined): boolean {
  return a === b || (a?.length === b?.length && (a ?? []).every((value, at) => value === b?.[at]));
}

/** One card for each metric that no other card contains. */
export function others(names: Set<string>): Card[] {
  const used = new Set(CARDS.flatMap((card) => present(card, names).map(({ name }) => name)));
  return [...names]
    .filter((name) => !used.has(name))
    .sort()
    .map((name) => ({ title: name, section: "Further metrics", metrics: [[name, name]], form: number }));
}
