/* An episode as a conversation: turns with calls, statuses and results. Everything is rendered as text. */
import { useMemo, useState } from "preact/hooks";
import type { EpisodeLine, Message, ToolCall, Turn } from "../../data/types";
import { count, isNumber, number, visible } from "../../format";
import { Chip, statusTone } from "../../ui/chip";
import { Code } from "../../ui/code";
import { Copy } from "../../ui/copy";
import { type Format, Formatted } from "../../text/formatted";
import { ROLES, SEGMENT_LABELS } from "../../words";
import { type Segment, segments } from "./segments";

/** Longer texts are cut until the user expands them. */
const MOST_SHOWN = 6_000;

export function Conversation({ line }: { line: EpisodeLine }) {
  const messages = line.messages ?? [];
  let turn = -1;
  return (
    <ol class="conversation" aria-label="Conversation">
      {messages.map((message, at) => {
        if (message.role === "assistant") turn++;
        const mine = message.role === "assistant" ? line.steps?.[turn] : undefined;
        return <Said key={at} message={message} number={turn} {...(mine ? { turn: mine } : {})} first={turn < 0} />;
      })}
    </ol>
  );
}

function Said({ message, turn, number: nth, first }: { message: Message; turn?: Turn; number: number; first: boolean }) {
  const [raw, setRaw] = useState(false);
  const policy = message.role === "assistant";
  const parts = useMemo(() => segments(message.content, message.role), [message]);
  const calls = turn?.info?.tool_calls ?? [];
  const written = parts.filter((part) => part.kind === "call" || (part.kind === "code" && calls.length > 0));
  const matched = written.length === calls.length;
  const name = message.role === "user" && first ? ROLES["problem"] : (ROLES[message.role] ?? message.role);
  return (
    <li class={`said ${policy ? "policy" : "shown"}`}>
      <header class="said-head">
        <h2 class="small-title">
          {name}
          {policy && <span class="quiet"> · turn {nth + 1}</span>}
        </h2>
        {turn && <TurnFacts turn={turn} calls={matched ? [] : calls} />}
        <span class="said-tools">
          {parts.length > 0 && (
            <button type="button" class="button small ghost" aria-pressed={raw} onClick={() => setRaw(!raw)}>
              {raw ? "Formatted" : "As written"}
            </button>
          )}
          <Copy text={message.content} what={`the text of ${name}${policy ? `, turn ${nth + 1}` : ""}`} />
        </span>
      </header>
      {raw || !parts.length ? (
        <LongText text={message.content} empty={SEGMENT_LABELS.empty} />
      ) : (
        parts.map((part, at) => {
          const call = matched ? calls[written.indexOf(part)] : undefined;
          return <Part key={at} part={part} format={policy ? "markdown" : "mathematics"} {...(call ? { call } : {})} />;
        })
      )}
      {turn?.observation !== undefined && (
        <details class="aside-text">
          <summary>Observation before this turn</summary>
          <LongText text={turn.observation} />
        </details>
      )}
    </li>
  );
}

function TurnFacts({ turn, calls }: { turn: Turn; calls: ToolCall[] }) {
  return (
    <span class="turn-facts">
      {calls.map((call, at) => (
        <CallChip key={at} call={call} />
      ))}
      {turn.stop > turn.start && <span>{count(turn.stop - turn.start)} tokens</span>}
      {isNumber(turn.reward) && turn.reward !== 0 && <span>reward {number(turn.reward)}</span>}
      {isNumber(turn.entropy) && <span>entropy {number(turn.entropy)}</span>}
      {turn.stale && <Chip tone="warn">stale weights</Chip>}
    </span>
  );
}

function CallChip({ call }: { call: ToolCall }) {
  const details = [call.error_type === call.status ? "" : call.error_type, call.exit_code ? `exit ${call.exit_code}` : "", call.truncated ? "cut" : ""].filter(Boolean);
  const word = `${call.injected ? "injected " : ""}${call.status}${details.length ? `: ${details.join(", ")}` : ""}`;
  return call.injected ? (
    <Chip tone="warn" sign="⚡" title="Fault injected by a wrapper">
      {word}
    </Chip>
  ) : (
    <Chip tone={statusTone(call.status)}>{word}</Chip>
  );
}

function Part({ part, call, format }: { part: Segment; call?: ToolCall; format: Format }) {
  const chip = call && <CallChip call={call} />;
  if (part.kind === "call" || part.kind === "code") {
    const label = part.kind === "call" ? part.name || SEGMENT_LABELS.call : part.language === "text" ? SEGMENT_LABELS.code : part.language;
    return (
      <div class="call">
        {chip && <div class="call-status">{chip}</div>}
        <Code text={part.text} language={part.language} label={visible(label)} />
        {part.more && <Code text={part.more} language="json" label={SEGMENT_LABELS.others} />}
      </div>
    );
  }
  if (part.kind === "output") {
    return (
      <div class="output">
        <p class="part-label">{SEGMENT_LABELS.output}</p>
        <LongText text={part.text} empty={SEGMENT_LABELS.nothing} />
      </div>
    );
  }
  if (part.kind === "think") {
    return (
      <details class="think" open={part.text.length < 1200}>
        <summary>{SEGMENT_LABELS.think}</summary>
        <LongText text={part.text} format={format} />
      </details>
    );
  }
  if (part.kind === "answer") {
    return (
      <div class="answer">
        <p class="part-label">{SEGMENT_LABELS.answer}</p>
        <LongText text={part.text} format={format} />
      </div>
    );
  }
  return <LongText text={part.text.replace(/^\n+|\s+$/g, "")} format={format} />;
}

export function LongText({ text, empty = "", format }: { text: string; empty?: string; format?: Format | undefined }) {
  const [whole, setWhole] = useState(false);
  const cut = text.length > MOST_SHOWN && !whole;
  const shown = cut ? text.slice(0, MOST_SHOWN) : text;
  if (!text) return <p class="quiet">{empty}</p>;
  return (
    <>
      {format ? (
        <Formatted text={shown} format={format} />
      ) : (
        <p class="text" dir="auto">
          {visible(shown)}
        </p>
      )}
      {cut && (
        <button type="button" class="button small" onClick={() => setWhole(true)}>
          Show all {count(text.length)} characters
        </button>
      )}
    </>
  );
}
