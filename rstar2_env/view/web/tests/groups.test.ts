import { expect, it } from "vitest";
import type { GroupEpisode } from "../src/data/group-types";
import { branchedFrom } from "../src/pages/groups/group-page";

it("names the episode that one branched from by its key", () => {
  const episodes = [
    { key: "train-2-16", member: 0, parent: null },
    { key: "train-2-19", member: 3, parent: [0, 12] },
    { key: "train-2-20", member: 4, parent: [-1, 12] },
    { key: "train-2-21", member: -1, parent: [9, 12] },
  ] as unknown as GroupEpisode[];
  expect(episodes.map((one) => branchedFrom(one, episodes))).toEqual(["", "train-2-16", "", ""]);
});
