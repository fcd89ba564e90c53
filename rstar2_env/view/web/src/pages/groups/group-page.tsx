/* One group: kept and dropped episodes, and the values used by the selector. */
import { useState } from "preact/hooks";
import { path } from "../../data/address";
import { useLoad } from "../../data/hooks";
import type { GroupDetail, GroupEpisode } from "../../data/group-types";
import { count, many, number, percent, signed } from "../../format";
import { href } from "../../shell/router";
import { Chip, CorrectChip, endTone, KeptChip, StatusChips } from "../../ui/chip";
import { LinkButton } from "../../ui/link-button";
import { Shown } from "../../ui/states";
import type { PageProps } from "../types";
import { RunFrame } from "../run-frame";
import { MarksLegend } from "./marks";
import { Picture } from "./picture";
import { SelectorCard } from "./selector-card";
import { label, whyDropped } from "./words";
import { NUMBERS, REASONS, selectionWords } from "../../words";

export function GroupPage({ values, query }: PageProps) {
  const { run = "", step = "", group = "" } = values;
  const load = useLoad<GroupDetail>(path("runs", run, "groups", step, group), { round: query["round"], split: query["split"] }, run);
  return (
    <RunFrame run={run} tab="groups">
      {(detail) => (
        <Shown load={load} what="Reading the group">
          {(found) => (
            <>
              <GroupHead run={run} group={found} />
              <SelectorCard part={found.selector ?? detail.recipe_parts?.["selector"]} reasons={Object.keys(found.reasons)} />
              <section class="card" aria-label="Picture of the group">
                <Picture episodes={found.episodes} run={run} />
                <MarksLegend />
                <ul class="story">
                  {story(found).map((words) => (
                    <li key={words}>{words}</li>
                  ))}
                </ul>
              </section>
              <h2 class="section-title">Episodes</h2>
              <Episodes run={run} episodes={found.episodes} />
            </>
          )}
        </Shown>
      )}
    </RunFrame>
  );
}

function GroupHead({ run, group }: { run: string; group: GroupDetail }) {
  const to = (place: number[] | null) =>
    place && href(["runs", run, "groups", place[0] ?? 0, place[1] ?? 0], { round: place[2] || undefined });
  const [previous, next] = [to(group.neighbours.previous), to(group.neighbours.next)];
  return (
    <div class="group-head">
      <div>
        <h2>
          Step {group.step}, group {group.group}
        </h2>
        <p class="question">{group.question}</p>
        <p class="page-facts">
          <span class="chips">
            {group.round > 0 && <Chip tone="info">refill {group.round}</Chip>}
            {group.rejected && <Chip tone="warn">rejected</Chip>}
            {group.task && <Chip>{group.task}</Chip>}
          </span>
          <a href={href(["runs", run, "problems", group.problem_id])}>{group.problem_id || "problem"}</a>
          <a href={href(["runs", run, "groups"], { problem: group.problem_id })}>all groups of this problem</a>
        </p>
      </div>
      <nav class="steps" aria-label="Previous and next group">
        <LinkButton to={previous}>← Previous</LinkButton>
        <LinkButton to={next}>Next →</LinkButton>
      </nav>
    </div>
  );
}

/** Description of the selection in sentences. */
function story(group: GroupDetail): string[] {
  const { right, wrong } = group.quotas;
  const words = [
    `${many(group.played, "episode")} ${group.played === 1 ? "was" : "were"} played: ${count(right.played)} correct, ${count(wrong.played)} wrong.`,
  ];
  if (group.kept === null) return words;
  if (group.rejected) words.push("None was kept for training: the group was rejected.");
  else words.push(`${count(group.kept)} kept for training: ${count(right.kept)} correct, ${count(wrong.kept)} wrong.`);
  for (const [reason, times] of Object.entries(group.reasons)) {
    if (reason) words.push(`${count(times)} ${selectionWords(false, reason)}. ${REASONS[reason] ?? "The selector gave a reason of its own."}`);
  }
  const copies = Math.max(0, ...group.episodes.map((one) => one.copies ?? 0));
  if (copies) words.push(`The group is used ${many(copies, "additional time")}, in place of missing groups.`);
  if (!group.rejected && group.tool_error_share !== null) {
    words.push(`Failed calls: ${percent(group.tool_error_share)} in all played episodes, ${percent(group.kept_tool_error_share)} in kept episodes.`);
  }
  return words;
}

/** The key of the episode that one branched from; empty if it did not, or if that episode is not in the group (member -1). */
export function branchedFrom({ parent }: GroupEpisode, episodes: GroupEpisode[]): string {
  return (parent && parent[0] >= 0 && episodes.find((one) => one.member === parent[0])?.key) || "";
}

function Branch({ from }: { from: string }) {
  return from ? <span class="quiet"> from {from}</span> : null;
}

function Episodes({ run, episodes }: { run: string; episodes: GroupEpisode[] }) {
  const [chosen, setChosen] = useState<string[]>([]);
  const names = [...new Set(episodes.flatMap((one) => Object.keys(one.weighed ?? {})))];
  // Values that are equal for all episodes are shown once, not as a column.
  const varied = names.filter((name) => new Set(episodes.map((one) => one.weighed?.[name] ?? null)).size > 1 || episodes.length === 1);
  const fixed = names.filter((name) => !varied.includes(name));
  const [a, b] = chosen;
  const choose = (key: string, on: boolean) => setChosen((before) => (on ? [...before, key].slice(-2) : before.filter((one) => one !== key)));
  return (
    <>
      <div class="toolbar">
        <LinkButton to={a && b ? href(["pair"], { a: `${run}/${a}`, b: `${run}/${b}` }) : null}>
          Open two side by side
        </LinkButton>
        {fixed.map((name) => (
          <Chip key={name} title={NUMBERS[name] ?? ""}>
            {label(name)} {number(episodes.find((one) => one.weighed)?.weighed?.[name] ?? null)}
          </Chip>
        ))}
      </div>
      <div class="card scroll-x" tabIndex={0} role="region" aria-label="Episodes of the group">
        <table class="plain-table group-table">
          <thead>
            <tr>
              <th scope="col">
                <span class="off-screen">Select</span>
              </th>
              <th scope="col">Episode</th>
              <th scope="col">Answer</th>
              <th scope="col">Selection</th>
              {varied.map((name) => (
                <th scope="col" class="right" key={name} title={NUMBERS[name] ?? ""}>
                  {label(name)}
                </th>
              ))}
              <th scope="col" class="right">
                Advantage
              </th>
              <th scope="col" class="right">
                Reward
              </th>
              <th scope="col">Calls</th>
              <th scope="col">End</th>
              <th scope="col" class="right">
                Tokens
              </th>
            </tr>
          </thead>
          <tbody>
            {episodes.map((one) => (
              <tr key={one.key} class={one.kept ? "" : "dropped"}>
                <td>
                  <input
                    type="checkbox"
                    aria-label={`Select episode ${one.key} to open side by side`}
                    checked={chosen.includes(one.key)}
                    onChange={(event) => choose(one.key, event.currentTarget.checked)}
                  />
                </td>
                <th scope="row">
                  <a href={href(["runs", run, "episodes", one.key])}>{one.key}</a>
                  <Branch from={branchedFrom(one, episodes)} />
                </th>
                <td>
                  <CorrectChip correct={one.correct} />
                </td>
                <td title={one.kept ? "" : whyDropped(one.reason, one.weighed)}>
                  <KeptChip kept={one.kept} reason={one.reason} />
                  {one.copies ? <Chip>used {one.copies + 1} times</Chip> : null}
                </td>
                {varied.map((name) => (
                  <td class="right" key={name}>
                    {number(one.weighed?.[name] ?? null)}
                  </td>
                ))}
                <td class="right">{signed(one.advantage)}</td>
                <td class="right">{number(one.reward)}</td>
                <td>
                  <StatusChips counts={one.statuses} injected={one.injected} />
                </td>
                <td>
                  <Chip tone={endTone(one.end)} sign="">
                    {one.end}
                  </Chip>
                </td>
                <td class="right">{count(one.policy_tokens)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
