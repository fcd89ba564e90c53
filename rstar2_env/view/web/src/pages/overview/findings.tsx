/* The findings of the diagnosis: what is wrong with a run, since when, its evidence, its cause, and what to change. */
import { useEffect } from "preact/hooks";
import { useLoad } from "../../data/hooks";
import type { Finding, FindingsAnswer } from "../../data/types";
import { count, many, visible } from "../../format";
import { href } from "../../shell/router";
import { Chip, type Tone } from "../../ui/chip";
import { Copy } from "../../ui/copy";
import { Loading, Notes, Shown } from "../../ui/states";

const TONES: Record<Finding["severity"], Tone> = { error: "bad", warning: "warn", note: "info" };

export function Findings({ run }: { run: string }) {
  const load = useLoad<FindingsAnswer>(`api/runs/${encodeURIComponent(run)}/findings`, {}, run);
  const again = load.value?.again_s ?? null;
  useEffect(() => {
    if (again === null) return;
    const timer = setTimeout(load.again, 1000 * again);
    return () => clearTimeout(timer);
  }, [load.value]);
  return (
    <section class="findings" aria-label="Findings">
      <Shown load={load} what="Diagnosing the run">
        {(answer) => (answer.findings === undefined ? <Loading what="Diagnosing the run" /> : <Found answer={answer} run={run} />)}
      </Shown>
    </section>
  );
}

function Found({ answer, run }: { answer: FindingsAnswer; run: string }) {
  if (answer.failed) return <Notes notes={[`The run cannot be diagnosed. ${answer.failed}`]} />;
  const found = answer.findings ?? [];
  const titles = new Map(found.map((finding) => [finding.check, finding.title]));
  const held = found.filter((finding) => finding.until === null);
  const ended = found.filter((finding) => finding.until !== null);
  return (
    <>
      <List findings={held} titles={titles} run={run} open />
      {ended.length > 0 && (
        <details class="findings-ended">
          <summary>{many(ended.length, "finding")} ended</summary>
          <List findings={ended} titles={titles} run={run} />
        </details>
      )}
      <details class="findings-looked">
        <summary>{visible(answer.summary ?? "")}</summary>
        {(answer.silent ?? []).length > 0 && <p>Checks without a finding: {(answer.silent ?? []).join(", ")}.</p>}
        {Object.entries(answer.not_recorded ?? {}).map(([check, needs]) => (
          <p key={check}>
            {check} was not run: it needs {needs.join(", ")}, which the run does not record.
          </p>
        ))}
      </details>
    </>
  );
}

interface ListProps {
  findings: Finding[];
  /** Titles of all findings of the run, by the name of the check. */
  titles: Map<string, string>;
  run: string;
  open?: boolean;
}

function List({ findings, titles, run, open = false }: ListProps) {
  if (!findings.length) return null;
  return (
    <ul class="findings-list">
      {findings.map((finding, at) => (
        <li key={finding.check} class="card finding">
          <p class="finding-head">
            <Chip tone={TONES[finding.severity]}>{finding.severity}</Chip>
            <strong>{finding.title}</strong>
            <span class="quiet">{when(finding)}</span>
          </p>
          <p>
            <Coded text={visible(finding.says)} />
          </p>
          {(finding.caused_by ?? []).length > 0 && (
            <p>Probably an effect of another finding: {(finding.caused_by ?? []).map((name) => titles.get(name) ?? name).join("; ")}</p>
          )}
          {finding.episodes.length > 0 && (
            <p class="finding-episodes">
              <span class="quiet">Episodes</span>
              {finding.episodes.map((key) => (
                <a key={key} href={href(["runs", run, "episodes", key])}>
                  {key}
                </a>
              ))}
            </p>
          )}
          <details open={open && at === 0}>
            <summary>Cause and remedy</summary>
            <dl class="finding-facts">
              <dt>Usual cause</dt>
              <dd>
                <Coded text={finding.cause} />
              </dd>
              {finding.change.length > 0 && (
                <>
                  <dt>What to change</dt>
                  <dd>
                    {finding.change.map((change) => (
                      <p key={change} class="finding-change">
                        <code>{change}</code>
                        <Copy text={change} what={change} />
                      </p>
                    ))}
                  </dd>
                </>
              )}
              <dt>Other explanations</dt>
              <dd>
                <Coded text={finding.otherwise} />
              </dd>
            </dl>
          </details>
        </li>
      ))}
    </ul>
  );
}

/** A text whose parts between backticks are code. */
function Coded({ text }: { text: string }) {
  return <>{text.split("`").map((part, at) => (at % 2 ? <code key={at}>{part}</code> : part))}</>;
}

function when(finding: Finding): string {
  return finding.until === null ? `since step ${count(finding.since)}` : `step ${count(finding.since)} to ${count(finding.until)}`;
}
