import { expect, it } from "vitest";
import { EmbeddedSource, readEmbedded } from "../src/data/embedded";
import type { Page } from "../src/data/types";

const DATA = {
  version: 1,
  note: "Only 2 episodes",
  responses: {
    "api/runs/r/episodes": { total: 2, rows: [{ key: "train-1-0", reward: 0 }, { key: "train-1-1", reward: 1 }] },
    "api/runs/r/episodes/train-1-1": { messages: [{ role: "assistant", content: "Ünique words" }] },
    "api/runs/r/problems/a%2Fb%28c%29": { problem_id: "a/b(c)" },
    "api/runs/r/statuses?split=train": { steps: [1] },
    "api/compare?a=r&b=s&split=eval": { total: 1, rows: [{ problem_id: "p", change: "lost", difference: -0.5 }], figures: { shared: 1 } },
    "api/compare?a=r&b=r&a_step=0&b_step=8&split=eval": { total: 1, rows: [{ problem_id: "p", difference: 0.25 }], figures: {} },
  },
};

async function source(data: unknown = DATA): Promise<EmbeddedSource> {
  const packed = new Blob([JSON.stringify(data)]).stream().pipeThrough(new CompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  return new EmbeddedSource(await readEmbedded(btoa(String.fromCharCode(...bytes))));
}

it("unpacks what an export carries, and says what was left out", async () => {
  expect((await source()).note).toBe("Only 2 episodes");
  await expect(source({ version: 2, responses: {} })).rejects.toThrow(/version 2/);
});

it("filters, searches and sorts lists in the page", async () => {
  const one = await source();
  const page = await one.get<Page<{ key: string }>>("api/runs/r/episodes", { sort: "-reward", offset: 0, limit: 1 });
  expect(page.total).toBe(2);
  expect(page.rows.map((row) => row.key)).toEqual(["train-1-1"]);
  const found = await one.get<Page<{ key: string }>>("api/runs/r/episodes", { q: "ünique" });
  expect(found.rows.map((row) => row.key)).toEqual(["train-1-1"]);
});

it("finds an address however its letters are escaped, with a query or without one that it does not know", async () => {
  const one = await source();
  await expect(one.get(`api/runs/r/problems/${encodeURIComponent("a/b(c)")}`, { split: "eval" })).resolves.toEqual({ problem_id: "a/b(c)" });
  await expect(one.get("api/runs/r/statuses", { split: "train" })).resolves.toEqual({ steps: [1] });
});

it("keeps a comparison's figures beside the rows that it filters", async () => {
  const one = await source();
  const lost = await one.get<Page<unknown> & { figures: unknown }>("api/compare", { a: "r", b: "s", change: "lost" });
  expect(lost).toMatchObject({ total: 1, figures: { shared: 1 } });
  expect((await one.get<Page<unknown>>("api/compare", { a: "r", b: "s", change: "gained" })).total).toBe(0);
});

it("compares the steps that were asked for, and no others in their place", async () => {
  const one = await source();
  const compare = (a: string, b: string, a_step: string, b_step: string) => one.get<Page<{ difference: number }>>("api/compare", { a, b, split: "eval", a_step, b_step });
  expect((await compare("r", "r", "0", "8")).rows[0]?.difference).toBe(0.25);
  expect((await compare("r", "r", "8", "0")).rows[0]?.difference).toBe(-0.25);
  await expect(compare("r", "s", "0", "8")).rejects.toThrow(/not included/);
});

it("says that something is not included in the export", async () => {
  await expect((await source()).get("api/runs/other")).rejects.toThrow(/not included in the exported page/);
});
