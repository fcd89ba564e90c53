/* Frame of every page of a run: name and state, notes, and links to its parts. */
import type { ComponentChildren } from "preact";
import { path } from "../data/address";
import { useLoad } from "../data/hooks";
import type { RunDetail, RunRow, Runs } from "../data/types";
import { ago, count, moment } from "../format";
import { href } from "../shell/router";
import { Chip, stateTone } from "../ui/chip";
import { Notes, Shown } from "../ui/states";
import { Tabs } from "../ui/tabs";

export type RunTab = "overview" | "episodes" | "groups" | "sampler" | "problems" | "recipe" | "events";

export function RunFrame({
  run,
  tab,
  children,
}: {
  run: string;
  tab: RunTab;
  children: (detail: RunDetail) => ComponentChildren;
}) {
  const load = useLoad<RunDetail>(path("runs", run), {}, run);
  const row = useLoad<Runs>(path("runs")).value?.runs.find((one) => one.run === run);
  // Figures over 100,000 episodes take a moment: show curves and tables before.
  const soon = load.value === null && load.error === null && row && EARLY.has(tab) ? before(row) : null;
  return (
    <Shown load={soon ? { ...load, value: soon } : load} what="Reading the run" page>
      {(detail) => (
        <>
          <RunHead detail={detail} />
          <Tabs label="Parts of the run" tabs={tabs(detail, tab)} />
          <Notes notes={remarks(detail)} />
          {children(detail)}
        </>
      )}
    </Shown>
  );
}

/** Tabs that can be shown with only the row from the list of runs. */
const EARLY = new Set<RunTab>(["overview", "episodes"]);

/** Preliminary details of a run from its row in the list of runs. */
function before(row: RunRow): RunDetail {
  return {
    ...row,
    config: {},
    recipe_parts: null,
    events: [],
    summary: null,
    verdict: [],
    health: [],
    sentences: [],
    stages: [],
    model_card: null,
    metric_names: [],
    episode_figures: { train: null, eval: null },
    columns: [],
  };
}

function RunHead({ detail }: { detail: RunDetail }) {
  return (
    <div class="page-head">
      <div>
        <h1>{detail.name}</h1>
        <div class="page-facts">
          <span class="chips">
            <Chip>{detail.recipe || detail.kind}</Chip>
            <Chip tone={stateTone(detail.state)}>{detail.state}</Chip>
            {detail.seed !== null && detail.seed !== undefined && <Chip>seed {detail.seed}</Chip>}
          </span>
          {detail.kind !== "evaluation" && (
            <span>
              step {count(detail.steps)}
              {detail.planned_steps ? ` of ${count(detail.planned_steps)}` : ""}
            </span>
          )}
          <span title={`Started ${moment(detail.started)}`}>updated {ago(detail.updated ?? detail.started)}</span>
          {detail.parent && (
            <a href={href(["runs", detail.parent])}>part of {detail.parent}</a>
          )}
          <span class="mono path">{detail.path}</span>
        </div>
      </div>
    </div>
  );
}

function tabs(detail: RunDetail, tab: RunTab) {
  const { run, episodes } = detail;
  const played = episodes.train + episodes.eval;
  const parts: [RunTab, string, boolean, string?][] = [
    ["overview", "Overview", true],
    ["episodes", "Episodes", played > 0, count(played)],
    ["groups", "Groups", episodes.train > 0],
    ["sampler", "Sampler", episodes.train > 0],
    ["problems", "Problems", played > 0],
    ["recipe", detail.kind === "training" ? "Recipe" : "Options", true],
    ["events", "Events", detail.events.length > 0 || detail.model_card !== null],
  ];
  return parts
    .filter(([name, , there]) => there || name === tab)
    .map(([name, label, , number]) => ({
      label,
      to: href(name === "overview" ? ["runs", run] : ["runs", run, name]),
      current: name === tab,
      ...(number ? { count: number } : {}),
    }));
}

function remarks(detail: RunDetail): string[] {
  const found = [...detail.notes];
  if (detail.error) found.unshift(`The run failed: ${detail.error}`);
  const { indexing, searchable } = detail;
  if (indexing && indexing.total > 0) {
    found.push(`Indexing: ${Math.floor((100 * indexing.done) / indexing.total)}% of the run's files so far.`);
  } else if (searchable && searchable.total > 0) {
    found.push(`Full-text search covers ${count(searchable.done)} of ${count(searchable.total)} episodes so far.`);
  }
  return found;
}
