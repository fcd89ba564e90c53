/* One episode: conversation, tokens and raw record; next and previous follow the list it was opened from. */
import { path } from "../../data/address";
import { useLoad } from "../../data/hooks";
import type { EpisodeLine, EpisodeRow, Page } from "../../data/types";
import { count, short, visible } from "../../format";
import { useShortcuts } from "../../shell/keyboard";
import { go, href } from "../../shell/router";
import { Chip, CorrectChip, endTone, KeptChip } from "../../ui/chip";
import { Code } from "../../ui/code";
import { Copy } from "../../ui/copy";
import { Notes, Shown } from "../../ui/states";
import { Tabs } from "../../ui/tabs";
import { filtersOf } from "../episodes/filters";
import type { PageProps } from "../types";
import { Conversation } from "./conversation";
import { Facts, Verdict } from "./facts";
import type { Figure } from "./token-scale";
import { TokensTab } from "./tokens";

export function EpisodePage({ values, query }: PageProps) {
  const run = values["run"] ?? "";
  const key = values["key"] ?? "";
  const load = useLoad<EpisodeLine>(path("runs", run, "episodes", key), {}, run);
  return (
    <Shown load={load} what="Reading the episode" page>
      {(line) => <Episode run={run} line={line} query={query} />}
    </Shown>
  );
}

function Episode({ run, line, query }: { run: string; line: EpisodeLine; query: Record<string, string> }) {
  const { row } = line;
  const tab = query["tab"] ?? "conversation";
  const here = (words: Record<string, string | null>) => href(["runs", run, "episodes", line.key], { ...query, ...words });
  return (
    <article>
      <div class="page-head">
        <div>
          <h1>
            Episode {row.key}
          </h1>
          <div class="page-facts">
            <span class="chips">
              <CorrectChip correct={row.correct} />
              <KeptChip kept={row.kept} reason={row.reason} />
              {row.end && (
                <Chip tone={endTone(row.end)} sign="">
                  {row.end}
                </Chip>
              )}
            </span>
            <span class="question">{visible(short(row.question || line.question || row.problem_id, 160))}</span>
          </div>
        </div>
        <Walk run={run} line={line} query={query} />
      </div>
      <Verdict line={line} />
      <Tabs
        label="Parts of the episode"
        tabs={[
          { label: "Conversation", to: here({ tab: null }), current: tab === "conversation" },
          { label: "Tokens", to: here({ tab: "tokens" }), current: tab === "tokens", ...(line.has_tokens ? {} : { count: "not stored" }) },
          { label: "Raw", to: here({ tab: "raw" }), current: tab === "raw" },
        ]}
      />
      <Notes notes={line.notes ?? []} />
      {tab === "tokens" ? (
        <TokensTab run={run} episode={line.key} has={line.has_tokens} figure={(query["by"] as Figure | undefined) ?? "logprob"} />
      ) : tab === "raw" ? (
        <Raw line={line} />
      ) : (
        <div class="episode">
          <Conversation line={line} />
          <Facts line={line} run={run} />
        </div>
      )}
    </article>
  );
}

/** Links to next and previous: in the list that the episode was opened from, else in the order of the run. */
function Walk({ run, line, query }: { run: string; line: EpisodeLine; query: Record<string, string> }) {
  const at = query["at"] === undefined ? null : Number(query["at"]);
  const filters = filtersOf(query);
  const sort = query["sort"] ?? "";
  const first = Math.max(0, (at ?? 0) - 1);
  const near = useLoad<Page<EpisodeRow>>(
    at === null ? null : path("runs", run, "episodes"),
    { ...filters, sort, offset: first, limit: 3 },
  ).value;
  const stay = { tab: query["tab"], by: query["by"] };
  const listed = (index: number) => {
    const key = near?.rows[index - first]?.key;
    return key === undefined || index < 0 ? null : href(["runs", run, "episodes", key], { ...filters, sort, ...stay, at: index });
  };
  const given = (key: string | null) => (key === null ? null : href(["runs", run, "episodes", key], stay));
  const previous = at === null ? given(line.previous) : listed(at - 1);
  const next = at === null ? given(line.next) : listed(at + 1);
  const list = href(["runs", run, "episodes"], { ...filters, sort });
  useShortcuts([
    { keys: ["j", "ArrowRight"], label: "Next episode", run: () => next && go(next, true) },
    { keys: ["k", "ArrowLeft"], label: "Previous episode", run: () => previous && go(previous, true) },
    { keys: ["u", "Escape"], label: "Back to the list of episodes", run: () => go(list) },
    { keys: ["t"], label: "Tokens or conversation", run: () => go(href(["runs", run, "episodes", line.key], { ...query, tab: query["tab"] === "tokens" ? null : "tokens" }), true) },
  ]);
  return (
    <nav class="page-tools" aria-label="Episodes">
      <a class="button" href={list}>
        All episodes
      </a>
      <Step to={previous} label="Previous" sign="←" />
      {at !== null && near && (
        <span class="quiet number">
          {count(at + 1)} of {count(near.total)}
        </span>
      )}
      <Step to={next} label="Next" sign="→" />
      <Copy text={() => location.href} what="the link to this view" label="Copy link" />
    </nav>
  );
}

function Step({ to, label, sign }: { to: string | null; label: string; sign: string }) {
  return to ? (
    <a class="button" href={to}>
      {label === "Previous" && <span aria-hidden="true">{sign}</span>} {label} {label === "Next" && <span aria-hidden="true">{sign}</span>}
    </a>
  ) : (
    <button type="button" class="button" disabled>
      {label}
    </button>
  );
}

function Raw({ line }: { line: EpisodeLine }) {
  const { row: _row, mates: _mates, next: _next, previous: _previous, notes: _notes, ...written } = line;
  return <Code text={JSON.stringify(written, null, 2)} language="json" label="Raw record of the episode" />;
}
