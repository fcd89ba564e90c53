/* The plots of the overview: metrics of each card, their order and number formats. */
import type { Metrics, Numbers } from "../../data/types";
import { number, percent, seconds } from "../../format";
import { CARD_TABLE } from "../../words";

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

/** The card whose metrics are the parts of a step's time. */
export const STEP_TIME = CARD_TABLE.step_time;

const FORMS: Record<string, (value: number) => string> = { percent, number, seconds };

export const CARDS: Card[] = CARD_TABLE.cards.map(({ metrics, form, ...card }) => ({
  ...card,
  metrics: metrics.map(([name = "", label = ""]): [string, string] => [name, label]),
  form: FORMS[form] ?? number,
}));

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
