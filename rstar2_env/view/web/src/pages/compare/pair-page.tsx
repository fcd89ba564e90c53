/* Two episodes side by side, from one or two runs. */
import { path } from "../../data/address";
import { useLoad } from "../../data/hooks";
import type { EpisodeLine, RunDetail } from "../../data/types";
import { count, number } from "../../format";
import { href } from "../../shell/router";
import { CorrectChip, KeptChip, StatusChips } from "../../ui/chip";
import { Empty, Notes, Shown } from "../../ui/states";
import { Conversation } from "../episode/conversation";
import type { PageProps } from "../types";

export function PairPage({ query }: PageProps) {
  const places = [query["a"], query["b"]].map(placeOf);
  return (
    <>
      <div class="page-head">
        <h1>Two episodes</h1>
      </div>
      <div class="pair">
        {places.map((place, at) =>
          place ? <One key={`${at} ${place.run} ${place.episode}`} {...place} nth={at + 1} /> : <Empty key={at} title="No episode selected">Select two episodes in a group, or a problem in a comparison.</Empty>,
        )}
      </div>
    </>
  );
}

/** Parse `RUN/KEY` into a run and the key of an episode. */
function placeOf(text: string | undefined): { run: string; episode: string } | null {
  const cut = (text ?? "").lastIndexOf("/");
  if (!text || cut < 1 || cut === text.length - 1) return null;
  return { run: text.slice(0, cut), episode: text.slice(cut + 1) };
}

function One({ run, episode, nth }: { run: string; episode: string; nth: number }) {
  const load = useLoad<EpisodeLine>(path("runs", run, "episodes", episode), {}, run);
  const detail = useLoad<RunDetail>(path("runs", run), {}, run).value;
  return (
    <section class="card pair-one" aria-label={`Episode ${nth}: ${run} ${episode}`}>
      <Shown load={load} what="Reading the episode">
        {(line) => (
          <>
            <h2>
              <a href={href(["runs", run, "episodes", episode])}>
                {detail?.name ?? run}, {episode}
              </a>
            </h2>
            <p class="page-facts">
              <span class="chips">
                <CorrectChip correct={line.row.correct} />
                <KeptChip kept={line.row.kept} reason={line.row.reason} />
              </span>
              <span>reward {number(line.row.reward)}</span>
              <span>step {count(line.row.step)}</span>
              <span>{count(line.row.policy_tokens)} tokens</span>
              <span>ended: {line.row.end}</span>
            </p>
            <StatusChips counts={line.row.statuses} injected={line.row.injected} />
            <p>
              Answer <span class="mono">{line.row.answer ?? "none"}</span>
              {line.gold !== null && line.gold !== undefined && (
                <>
                  , gold answer <span class="mono">{line.gold}</span>
                </>
              )}
            </p>
            <Notes notes={line.notes} />
            <Conversation line={line} />
          </>
        )}
      </Shown>
    </section>
  );
}
