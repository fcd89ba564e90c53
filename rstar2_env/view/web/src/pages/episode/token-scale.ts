/* Colour classes of tokens by a figure: a few levels with labels for the legend. */
import { isNumber, number } from "../../format";
import type { Token } from "../../data/types";

export type Figure = "logprob" | "advantage" | "ratio";

export interface Level {
  /** CSS class `t-…`, which defines colours and underline. */
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

/** Levels of a figure, from high to low; the levels of advantages are scaled by the largest absolute value. */
export function levels(figure: Figure, tokens: Token[]): [number, Level][] {
  if (figure === "logprob") return LOGPROB;
  if (figure === "ratio") return RATIO;
  const most = tokens.reduce((found, token) => Math.max(found, Math.abs(token.advantage ?? 0)), 0) || 1;
  const half = most / 2;
  return [
    [half, { look: "t-p2", label: `${number(half)} or more` }],
    [Number.MIN_VALUE, { look: "t-p1", label: `0 to ${number(half)}` }],
    [0, { look: "t-zero", label: "0" }],
    [-half, { look: "t-n1", label: `−${number(half)} to 0` }],
    [-Infinity, { look: "t-n2", label: `under −${number(half)}` }],
  ];
}

/** CSS class of a token; environment tokens and tokens without the figure have neutral classes. */
export function lookOf(token: Token, figure: Figure, scale: [number, Level][]): string {
  if (!token.mask) return "t-env";
  const value = token[figure];
  if (!isNumber(value)) return "t-none";
  return scale.find(([least]) => value >= least)?.[1].look ?? "t-none";
}
