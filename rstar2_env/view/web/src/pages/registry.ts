/* The list of pages: address pattern, title and component. Add a line here for a new page. */
import type { ComponentType } from "preact";
import { match } from "../shell/router";
import { EpisodePage } from "./episode/page";
import { EpisodesPage } from "./episodes/page";
import { EventsPage } from "./overview/events-page";
import { RecipePage } from "./overview/recipe-page";
import { RunPage } from "./overview/run-page";
import { RunsSideBySide } from "./overview/runs-page";
import { ComparePage } from "./compare/compare-page";
import { PairPage } from "./compare/pair-page";
import { GroupPage } from "./groups/group-page";
import { GroupsPage } from "./groups/groups-page";
import { SamplerPage } from "./groups/sampler-page";
import { ProblemPage } from "./problems/problem-page";
import { ProblemsPage } from "./problems/problems-page";
import { RunsPage } from "./runs";
import type { PageProps } from "./types";

interface PageEntry {
  pattern: string;
  title: (values: Record<string, string>) => string[];
  component: ComponentType<PageProps>;
}

export const PAGES: PageEntry[] = [
  { pattern: "", title: () => ["Runs"], component: RunsPage },
  { pattern: "overview", title: () => ["Runs side by side"], component: RunsSideBySide },
  { pattern: "runs/:run", title: ({ run = "" }) => [run], component: RunPage },
  { pattern: "runs/:run/episodes", title: ({ run = "" }) => ["Episodes", run], component: EpisodesPage },
  { pattern: "runs/:run/episodes/:key", title: ({ run = "", key = "" }) => [key, run], component: EpisodePage },
  { pattern: "runs/:run/groups", title: ({ run = "" }) => ["Groups", run], component: GroupsPage },
  { pattern: "runs/:run/groups/:step/:group", title: ({ run = "", step, group }) => [`Group ${group} of step ${step}`, run], component: GroupPage },
  { pattern: "runs/:run/sampler", title: ({ run = "" }) => ["Sampler", run], component: SamplerPage },
  { pattern: "runs/:run/problems", title: ({ run = "" }) => ["Problems", run], component: ProblemsPage },
  { pattern: "runs/:run/problems/:problem", title: ({ run = "", problem = "" }) => [problem, run], component: ProblemPage },
  { pattern: "compare", title: () => ["Compare"], component: ComparePage },
  { pattern: "pair", title: () => ["Two episodes"], component: PairPage },
  { pattern: "runs/:run/recipe", title: ({ run = "" }) => ["Recipe", run], component: RecipePage },
  { pattern: "runs/:run/events", title: ({ run = "" }) => ["Events", run], component: EventsPage },
];

/** Find the page for an address, with the values of the placeholders in its pattern. */
export function find(segments: string[]): (PageEntry & { values: Record<string, string> }) | null {
  for (const page of PAGES) {
    const values = match(page.pattern, segments);
    if (values) return { ...page, values };
  }
  return null;
}
