import { expect, it } from "vitest";
import type { GroupEpisode } from "../src/data/group-types";
import { branchedFrom } from "../src/pages/groups/group-page";
import { whyDropped } from "../src/pages/groups/words";

it("names the episode that one branched from by its key", () => {
  const episodes = [
    { key: "train-2-16", member: 0, parent: null },
    { key: "train-2-19", member: 3, parent: [0, 12] },
    { key: "train-2-20", member: 4, parent: [-1, 12] },
    { key: "train-2-21", member: -1, parent: [9, 12] },
  ] as unknown as GroupEpisode[];
  expect(episodes.map((one) => branchedFrom(one, episodes))).toEqual(["", "train-2-16", "", ""]);
});

it("says why an episode was dropped, with its chance if that decided", () => {
  expect(whyDropped("draw", { chance: 0.125 })).toMatch(/^The random draw kept other episodes; .+ The selector gave it a chance of 12\.5%\.$/);
  expect(whyDropped("penalty", { chance: 0 })).toMatch(/^The penalties .+ a chance of 0%\.$/);
  expect(whyDropped("penalty", { penalty: 1 })).not.toContain("chance");
  expect(whyDropped("quota", { chance: 0.125 })).not.toContain("chance");
  expect(whyDropped("mine", null)).toBe("The selector gave a reason of its own.");
});
