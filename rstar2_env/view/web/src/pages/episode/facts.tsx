/* Facts of an episode: verdict, rewards, selection, group. */
import type { ComponentChildren } from "preact";
import type { EpisodeLine } from "../../data/types";
import { count, isNumber, NONE, number, plain, seconds, signed, visible } from "../../format";
import { href } from "../../shell/router";
import { Chip, CorrectChip, endTone, KeptChip, StatusChips } from "../../ui/chip";
import { FACTS, REASONS } from "../../words";
import { LongText } from "./conversation";
import { verdictWords } from "./verdict";

/** The answer, the gold answer, and the reason of the grade. */
export function Verdict({ line }: { line: EpisodeLine }) {
  const { row } = line;
  return (
    <dl class="verdict card">
      <div>
        <dt>{FACTS.answer}</dt>
        <dd class="verdict-text">{row.answer === null || row.answer === undefined ? <span class="quiet unsaid">none marked</span> : visible(row.answer)}</dd>
      </div>
      <div>
        <dt>{FACTS.gold}</dt>
        <dd class="verdict-text">{line.gold === null ? <span class="quiet unsaid">not recorded</span> : visible(line.gold)}</dd>
      </div>
      <div>
        <dt>{FACTS.verdict}</dt>
        <dd>
          <CorrectChip correct={row.correct} />
          {line.verdict && <p class="verifier">{verdictWords(line.verdict)}</p>}
        </dd>
      </div>
      <div>
        <dt>{FACTS.reward}</dt>
        <dd class="number">{number(row.reward)}</dd>
      </div>
    </dl>
  );
}

export function Facts({ line, run }: { line: EpisodeLine; run: string }) {
  const { row } = line;
  const rewards = Object.entries(line.rewards ?? {});
  const usage = Object.entries((line["usage"] ?? {}) as Record<string, unknown>);
  const parent = line["parent"];
  return (
    <aside class="facts" aria-label="Facts of the episode">
      {row.kept !== null && (
        <Box title={FACTS.kept}>
          <Fact name="For training" value={<KeptChip kept={row.kept} reason={row.reason} />} />
          {!row.kept && Object.hasOwn(REASONS, row.reason) && <p class="quiet">{REASONS[row.reason]}</p>}
          <Fact name={FACTS.advantage} value={signed(row.advantage)} />
          {row.round > 0 && <Fact name="Refill" value={`round ${row.round}`} />}
          <p>
            <a href={href(["runs", run, "groups", row.step, row.group], { split: row.split, round: row.round || null })}>Explain in group</a>
          </p>
        </Box>
      )}
      <Box title="Rewards">
        {rewards.length ? rewards.map(([name, value]) => <Fact key={name} name={name} value={number(value)} />) : <Fact name="return" value={number(row.reward)} />}
      </Box>
      <Box title="Calls">
        <StatusChips counts={row.statuses} injected={row.injected} />
      </Box>
      {line.mates.length > 1 && <Mates line={line} run={run} />}
      <Box title="Problem">
        <Fact name="Id" value={<a href={href(["runs", run, "problems", row.problem_id], { split: row.split })}>{visible(row.problem_id || NONE)}</a>} />
        {row.task && <Fact name="Task" value={visible(row.task)} />}
        {row.problem_source && <Fact name="Source" value={visible(row.problem_source)} />}
        {row.difficulty && <Fact name="Difficulty" value={visible(row.difficulty)} />}
        <Fact name="Seed" value={<span class="mono">{plain(line["seed"])}</span>} />
      </Box>
      <Box title="Play">
        <Fact name={FACTS.end} value={<Chip tone={endTone(row.end)} sign="">{row.end || NONE}</Chip>} />
        <Fact name={FACTS.turns} value={count(row.turns)} />
        <Fact name={FACTS.policy_tokens} value={count(row.policy_tokens)} />
        {isNumber(row.seconds) && <Fact name="Time" value={seconds(row.seconds)} />}
        <Fact name="Weights" value={`version ${plain(row.version)}`} />
        {row.source && row.source !== "policy" && <Fact name="Played by" value={row.source} />}
        {Array.isArray(parent) && <Fact name="Branched from" value={parent[0] === -1 ? `token ${parent[1]}` : `member ${parent[0]}, token ${parent[1]}`} />}
        {isNumber(line["answer_tags"]) && line["answer_tags"] !== 1 && <Fact name="Marked answers" value={count(line["answer_tags"])} />}
        {usage.map(([name, value]) => (
          <Fact key={name} name={name.replaceAll("_", " ")} value={isNumber(value) ? number(value, 6) : plain(value)} />
        ))}
      </Box>
      {typeof line["shown"] === "string" && line["shown"] && (
        <Box title="Prompt used instead">
          <LongText text={line["shown"]} />
        </Box>
      )}
      {typeof line["error"] === "string" && line["error"] && (
        <Box title="Failure">
          <pre class="traceback" role="group" tabIndex={0} aria-label="Traceback">
            {visible(line["error"])}
          </pre>
        </Box>
      )}
    </aside>
  );
}

function Mates({ line, run }: { line: EpisodeLine; run: string }) {
  return (
    <Box title={`Group (${line.mates.length})`}>
      <ul class="mates">
        {line.mates.map((mate) => {
          const word = `member ${mate.member}, ${mate.correct ? "correct" : "wrong"}${mate.kept === null ? "" : mate.kept ? ", kept" : ", dropped"}, reward ${number(mate.reward)}`;
          return (
            <li key={mate.key}>
              <a
                href={href(["runs", run, "episodes", mate.key])}
                class={`mate ${mate.correct ? "right" : "wrong"} ${mate.kept === false ? "dropped" : ""}`}
                aria-label={word}
                title={word}
                aria-current={mate.key === line.key ? "page" : undefined}
              >
                <span aria-hidden="true">
                  {mate.correct ? "✓" : "✕"} {mate.member}
                </span>
              </a>
            </li>
          );
        })}
      </ul>
      <p class="quiet mates-note">✓ correct, ✕ wrong, dashed: dropped</p>
    </Box>
  );
}

function Box({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="fact-box" aria-label={title}>
      <h2 class="small-title">{title}</h2>
      {children}
    </section>
  );
}

function Fact({ name, value }: { name: string; value: ComponentChildren }) {
  return (
    <div class="fact">
      <span class="fact-name">{name}</span>
      <span class="fact-value number">{value}</span>
    </div>
  );
}
