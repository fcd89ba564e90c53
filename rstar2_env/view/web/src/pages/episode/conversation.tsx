/* An episode as a conversation: turns with calls, statuses and results. Everything is rendered as text. */
import { useMemo, useState } from "preact/hooks";
import type { EpisodeLine, Message, ToolCall, Turn } from "../../data/types";
import { count, isNumber, number, visible } from "../../format";
import { Chip, statusTone } from "../../ui/chip";
import { Code } from "../../ui/code";
import { Copy } from "../../ui/copy";
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

const ROLES: Record<string, string> = { assistant: "Policy", user: "Environment", system: "System", tool: "Tool" };

function Said({ message, turn, number: nth, first }: { message: Message; turn?: Turn; number: number; first: boolean }) {
  const [raw, setRaw] = useState(false);
  const policy = message.role === "assistant";
  const parts = useMemo(() => segments(message.content, message.role), [message]);
  const calls = turn?.info?.tool_calls ?? [];
  const written = parts.filter((part) => part.kind === "call" || (part.kind === "code" && calls.length > 0));
  const matched = written.length === calls.length;
  const name = message.role === "user" && first ? "Problem" : (ROLES[message.role] ?? message.role);
  return (
    <li class={`said ${policy ? "policy" : "shown"}`}>
      <header class="said-head">
        <h2 class="small-title">
          {name}
          {policy && <span class="quiet"> · turn {nth + 1}</span>}
        </h2>
        {turn && <TurnFacts turn={turn} calls={matched ? [] : calls} />}
        <span class="said-tools">
          {parts.some((part) => part.kind !== "text") && (
            <button type="button" class="button small ghost" aria-pressed={raw} onClick={() => setRaw(!raw)}>
              {raw ? "Formatted" : "As written"}
            </button>
          )}
          <Copy text={message.content} what={`the text of ${name}${policy ? `, turn ${nth + 1}` : ""}`} />
        </span>
      </header>
      {raw || !parts.length ? (
        <LongText text={message.content} empty="(no text)" />
      ) : (
        parts.map((part, at) => {
          const call = matched ? calls[written.indexOf(part)] : undefined;
          return <Part key={at} part={part} {...(call ? { call } : {})} />;
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

function Part({ part, call }: { part: Segment; call?: ToolCall }) {
  const chip = call && <CallChip call={call} />;
  if (part.kind === "call" || part.kind === "code") {
    const label = part.kind === "call" ? part.name || "call" : part.language === "text" ? "code" : part.language;
    return (
      <div class="call">
        {chip && <div class="call-status">{chip}</div>}
        <Code text={part.text} language={part.language} label={visible(label)} />
        {part.more && <Code text={part.more} language="json" label="Other arguments" />}
      </div>
    );
  }
  if (part.kind === "output") {
    return (
      <div class="output">
        <p class="part-label">Result</p>
        <LongText text={part.text} empty="(printed nothing)" />
      </div>
    );
  }
  if (part.kind === "think") {
    return (
      <details class="think" open={part.text.length < 1200}>
        <summary>Thoughts</summary>
        <LongText text={part.text} />
      </details>
    );
  }
  if (part.kind === "answer") {
    return (
      <div class="answer">
        <p class="part-label">Answer</p>
        <LongText text={part.text} />
      </div>
    );
  }
  return <LongText text={part.text.trim()} />;
}

export function LongText({ text, empty = "" }: { text: string; empty?: string }) {
  const [whole, setWhole] = useState(false);
  const cut = text.length > MOST_SHOWN && !whole;
  if (!text) return <p class="quiet">{empty}</p>;
  return (
    <>
      <p class="text" dir="auto">
        {visible(cut ? text.slice(0, MOST_SHOWN) : text)}
      </p>
      {cut && (
        <button type="button" class="button small" onClick={() => setWhole(true)}>
          Show all {count(text.length)} characters
        </button>
      )}
    </>
  );
}
