/* Sentences about the selection of an episode. */
import type { Weighed } from "../../data/group-types";
import { percent } from "../../format";
import { NUMBER_LABELS, REASONS } from "../../words";

/** Why one episode was dropped, in a sentence, with the number that decided. */
export function whyDropped(reason: string, weighed: Weighed | null | undefined): string {
  const why = REASONS[reason] ?? "The selector gave a reason of its own.";
  const chance = weighed?.["chance"];
  if (chance === undefined || chance === null || (reason !== "draw" && reason !== "penalty")) return why;
  // The number is a probability in the first draw or, with importance weights, that of being kept.
  return `${why} The selector gave it a chance of ${percent(chance)}.`;
}

export function label(name: string): string {
  return NUMBER_LABELS[name] ?? name.charAt(0).toUpperCase() + name.slice(1);
}
