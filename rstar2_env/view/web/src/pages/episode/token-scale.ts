/* Classes of tokens by a figure: few, with words for the legend, so that a reader can name what a colour says. */
import { isNumber, number } from "../../format";
import type { Token } from "../../data/types";

export type Figure = "logprob" | "advantage" | "ratio";

export interface Level {
  /** Name of the class; `t-…` has its colours and its line. */
  look: string;
  label: string;
}

export const FIGURES: { value: Figure; label: string }[] = [
  { value: "logprob", label: "Log-probability" },
  { value: "advantage", label: "Advantage" },
  { value: "ratio", label: "Importance ratio" },
];

const LOGPROB: [number, Level][] = [
  [Math.log(0.9), { look: "t-s0", label: "over 90%" }],
  [Math.log(0.5), { look: "t-s1", label: "50% to 90%" }],
  [Math.log(0.1), { look: "t-s2", label: "10% to 50%" }],
  [Math.log(0.01), { look: "t-s3", label: "1% to 10%" }],
  [-Infinity, { look: "t-s4", label: "under 1%" }],
];

const RATIO: [number, Level][] = [
  [1.25, { look: "t-p2", label: "over 1.25" }],
  [1.05, { look: "t-p1", label: "1.05 to 1.25" }],
  [0.95, { look: "t-zero", label: "0.95 to 1.05" }],
  [0.8, { look: "t-n1", label: "0.8 to 0.95" }],
  [-Infinity, { look: "t-n2", label: "under 0.8" }],
];

/** The levels of a figure over an episode's tokens, from high to low; those of advantages depend on the greatest. */
export function levels(figure: Figure, tokens: Token[]): [number, Level][] {
  if (figure === "logprob") return LOGPROB;
  if (figure === "ratio") return RATIO;
  const most = tokens.reduce((found, token) => Math.max(found, Math.abs(token.advantage ?? 0)), 0) || 1;
  const half = most / 2;
  return [
    [half, { look: "t-p2", label: `${number(half)} and more` }],
    [Number.MIN_VALUE, { look: "t-p1", label: `0 to ${number(half)}` }],
    [0, { look: "t-zero", label: "0" }],
    [-half, { look: "t-n1", label: `−${number(half)} to 0` }],
    [-Infinity, { look: "t-n2", label: `under −${number(half)}` }],
  ];
}

/** The class of a token; the environment's tokens and those without the figure have none. */
export function lookOf(token: Token, figure: Figure, scale: [number, Level][]): string {
  if (!token.mask) return "t-env";
  const value = token[figure];
  if (!isNumber(value)) return "t-none";
  return scale.find(([least]) => value >= least)?.[1].look ?? "t-none";
}
