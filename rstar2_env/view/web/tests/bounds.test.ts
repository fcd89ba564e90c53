import { expect, it } from "vitest";
import { number, percent } from "../src/format";
import { tickLabels } from "../src/plots/bounds";

it("labels ticks with as many digits as it takes to tell them apart", () => {
  expect(tickLabels([0.999, 1, 1.001], number)).toEqual(["0.999", "1", "1.001"]);
  expect(tickLabels([1, 1.0002, 1.0004], number)).toEqual(["1", "1.0002", "1.0004"]);
  expect(tickLabels([0, 0.5, null], percent)).toEqual(["0%", "50.0%", ""]);
});
