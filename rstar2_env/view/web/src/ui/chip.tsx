/* Labelled chips: statuses, ends, states. Each has a word and a symbol, so colour is never the only cue. */
import type { ComponentChildren } from "preact";
import { visible } from "../format";
import { GRADED, REASONS, selectionWords } from "../words";

export type Tone = "good" | "bad" | "warn" | "info" | "quiet";

const SIGNS: Record<Tone, string> = { good: "✓", bad: "✕", warn: "!", info: "•", quiet: "" };

export function Chip({
  tone = "quiet",
  sign,
  title,
  children,
}: {
  tone?: Tone;
  sign?: string;
  title?: string;
  children: ComponentChildren;
}) {
  const mark = sign ?? SIGNS[tone];
  return (
    <span class={`chip ${tone}`} title={title}>
      {mark && (
        <span class="chip-sign" aria-hidden="true">
          {mark}
        </span>
      )}
      {children}
    </span>
  );
}

/** Tone of a tool status. */
export function statusTone(status: string): Tone {
  if (status === "ok") return "good";
  if (status === "empty") return "info";
  if (status === "unavailable") return "warn";
  return "bad";
}

/** Tone of the end of an episode. */
export function endTone(end: string): Tone {
  if (end === "answered" || end === "terminated") return "info";
  if (end === "unavailable" || end === "cancelled") return "quiet";
  return "warn";
}

/** Tone of the state of a run or stage. */
export function stateTone(state: string): Tone {
  if (state === "finished" || state === "done") return "good";
  if (state === "running") return "info";
  if (state === "failed") return "bad";
  return "warn";
}

export function StatusChips({ counts, injected }: { counts: Record<string, number>; injected?: Record<string, number> }) {
  const entries = Object.entries(counts);
  const faults = Object.entries(injected ?? {});
  if (!entries.length && !faults.length) return <span class="quiet">no calls</span>;
  return (
    <span class="chips">
      {entries.map(([name, count]) => (
        <Chip key={name} tone={statusTone(name)}>
          {visible(name)}
          {count > 1 && ` ×${count}`}
        </Chip>
      ))}
      {faults.map(([name, count]) => (
        <Chip key={`injected ${name}`} tone="warn" sign="⚡" title="Fault injected by a wrapper">
          injected {visible(name)}
          {count > 1 && ` ×${count}`}
        </Chip>
      ))}
    </span>
  );
}

export function CorrectChip({ correct }: { correct: boolean | null }) {
  if (correct === null || correct === undefined) return <span class="quiet">not graded</span>;
  return correct ? <Chip tone="good">{GRADED.true}</Chip> : <Chip tone="bad">{GRADED.false}</Chip>;
}

export function KeptChip({ kept, reason }: { kept: boolean | null; reason: string }) {
  if (kept === null || kept === undefined) return null;
  return kept ? (
    <Chip tone="good" sign="▲">
      {selectionWords(true)}
    </Chip>
  ) : (
    <Chip tone="quiet" sign="▽" title={REASONS[reason] ?? ""}>
      {visible(selectionWords(false, reason))}
    </Chip>
  );
}
