/* Answers about the run in a sentence, with the episodes behind each, and comparisons of its steps and seeds. */
import { path } from "../../data/address";
import { useLoad } from "../../data/hooks";
import type { RunDetail, Runs } from "../../data/types";
import { visible } from "../../format";
import { href } from "../../shell/router";
import { LinkButton } from "../../ui/link-button";
import { afterError, REASONS } from "../../words";
import { CompareSteps } from "../compare/compare-steps";

/** The text of the link to one kind of a sentence's episodes; a run's files name the kinds. */
export function partLabel(name: string, part: Record<string, string>): string {
  return part["after_error"] ? afterError(part["after_error"]) : visible(name);
}

/** A sentence whose topic, before the first colon, is emphasized, so that a reader finds it. */
function Sentence({ text }: { text: string }) {
  const at = text.indexOf(": ") + 1;
  return (
    <>
      <strong>{text.slice(0, at)}</strong>
      {text.slice(at)}
    </>
  );
}

export function Ways({ detail }: { detail: RunDetail }) {
  const { run } = detail;
  const runs = useLoad<Runs>(path("runs")).value?.runs ?? [];
  const seeds = runs.filter((row) => row.kind === detail.kind && row.group !== "" && row.group === detail.group).map((row) => row.run);
  if (detail.kind !== "training" || !detail.sentences.length) return null;
  return (
    <section class="card ways" aria-label="Answers">
      {detail.sentences.map(({ text, filter, parts, metric }) => (
        <p key={text}>
          <Sentence text={visible(text)} /> {filter && <a href={href(["runs", run, "episodes"], { split: "train", ...filter })}>Episodes</a>}
          {Object.entries(parts).map(([name, part]) => (
            <span key={name}>
              {" · "}
              <a href={href(["runs", run, "episodes"], { split: "train", ...part })} title={REASONS[part["reason"] ?? ""] ?? ""}>
                {partLabel(name, part)}
              </a>
            </span>
          ))}
          {metric && <a href={href(["runs", run], { metric })}>Plot</a>}
        </p>
      ))}
      <p class="ways-links">
        <CompareSteps run={run} split={detail.evaluations > 1 ? "eval" : "train"} />
        {seeds.length > 1 && <LinkButton to={href(["overview"], { runs: seeds.join(",") })}>Curves of the {seeds.length} seeds</LinkButton>}
      </p>
    </section>
  );
}
