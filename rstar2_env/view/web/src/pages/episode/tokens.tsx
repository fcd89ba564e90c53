/* Tokens of a training row, coloured by a figure; details of one token by pointer or arrow keys. */
import { useMemo, useState } from "preact/hooks";
import { path } from "../../data/address";
import { useLoad } from "../../data/hooks";
import type { Token, Tokens } from "../../data/types";
import { count, isNumber, NONE, number, percent, signed, visible } from "../../format";
import { setQuery } from "../../shell/router";
import { Choose } from "../../ui/fields";
import { Empty, Notes, Shown } from "../../ui/states";
import { LongText } from "./conversation";
import { type Figure, FIGURES, levels, lookOf } from "./token-scale";

/** Number of tokens per part of the list; the browser skips parts that are not visible. */
const PART = 400;

export function TokensTab({ run, episode, has, figure }: { run: string; episode: string; has: boolean; figure: Figure }) {
  const load = useLoad<Tokens>(has ? path("runs", run, "episodes", episode, "tokens") : null);
  if (!has) {
    return (
      <Empty title="The tokens of this episode were not stored">
        Tokens are stored for training rows if the run uses <code>--set run.keep_tokens=true</code>.
      </Empty>
    );
  }
  return (
    <Shown load={load} what="Reading the tokens">
      {(value) => <TokenView value={value} figure={figure} />}
    </Shown>
  );
}

function TokenView({ value, figure }: { value: Tokens; figure: Figure }) {
  const { tokens } = value;
  const [at, setAt] = useState<number | null>(null);
  const scale = useMemo(() => levels(figure, tokens), [figure, tokens]);
  const token = at === null ? undefined : tokens[at];
  const move = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10 };
    const step = steps[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const next = Math.max(0, Math.min(tokens.length - 1, (at ?? -1) + step));
    setAt(next);
    document.getElementById(`token-${next}`)?.scrollIntoView({ block: "nearest" });
  };
  const point = (event: Event) => {
    const place = (event.target as HTMLElement).id;
    if (place.startsWith("token-")) setAt(Number(place.slice(6)));
  };
  return (
    <div class="token-view">
      {value.note && <Notes notes={[value.note]} />}
      <div class="toolbar">
        <Choose label="Colour by" value={figure} options={FIGURES} onChange={(by) => setQuery({ by: by === "logprob" ? null : by })} />
        <TokenLegend scale={scale.map(([, level]) => level)} />
      </div>
      <Totals tokens={tokens} />
      {value.prompt && (
        <details class="aside-text">
          <summary>Prompt, {count(value.prompt_ids)} tokens</summary>
          <LongText text={value.prompt} />
        </details>
      )}
      <p class="token-detail card" aria-live="polite">
        {token ? <Detail token={token} at={at ?? 0} /> : "Point at a token, or use the arrow keys, to see its figures."}
      </p>
      <div
        class="tokens card"
        tabIndex={0}
        role="group"
        aria-label={`${count(tokens.length)} tokens; use the arrow keys to select one`}
        onKeyDown={move}
        onMouseOver={point}
        onClick={point}
      >
        {Array.from({ length: Math.ceil(tokens.length / PART) }, (_, part) => (
          <TokenPart
            key={part}
            tokens={tokens}
            first={part * PART}
            figure={figure}
            scale={scale}
            active={at !== null && Math.floor(at / PART) === part ? at : -1}
          />
        ))}
      </div>
    </div>
  );
}

function TokenPart({
  tokens,
  first,
  figure,
  scale,
  active,
}: {
  tokens: Token[];
  first: number;
  figure: Figure;
  scale: ReturnType<typeof levels>;
  active: number;
}) {
  return useMemo(
    () => (
      <span class="token-part">
        {tokens.slice(first, first + PART).map((token, index) => {
          const at = first + index;
          return (
            <span key={at} id={`token-${at}`} class={`token ${lookOf(token, figure, scale)}${at === active ? " active" : ""}`}>
              {spelled(token.text)}
            </span>
          );
        })}
      </span>
    ),
    [tokens, first, figure, scale, active],
  );
}

function Detail({ token, at }: { token: Token; at: number }) {
  const probability = isNumber(token.logprob) && token.mask ? ` (${percent(Math.exp(token.logprob))})` : "";
  return (
    <>
      <code class="token-name">{spelled(token.text) || "(empty)"}</code>
      <span>token {count(at + 1)}</span>
      <span>id {token.id}</span>
      <span>{token.mask ? "policy token" : "environment token: no loss"}</span>
      {token.mask ? (
        <>
          <span>
            log-probability {number(token.logprob)}
            {probability}
          </span>
          <span>advantage {signed(token.advantage)}</span>
          <span>ratio {isNumber(token.ratio) ? number(token.ratio, 4) : NONE}</span>
        </>
      ) : null}
    </>
  );
}

function TokenLegend({ scale }: { scale: { look: string; label: string }[] }) {
  return (
    <ul class="token-legend" aria-label="Colour legend">
      {[...scale, { look: "t-env", label: "environment" }].map((level) => (
        <li key={level.look}>
          <span class={`token ${level.look}`} aria-hidden="true">
            ab
          </span>{" "}
          {level.label}
        </li>
      ))}
    </ul>
  );
}

function Totals({ tokens }: { tokens: Token[] }) {
  const mine = tokens.filter((token) => token.mask);
  const mean = (values: (number | null)[]) => {
    const known = values.filter(isNumber);
    return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  };
  return (
    <p class="quiet token-totals">
      {count(mine.length)} policy tokens, {count(tokens.length - mine.length)} environment tokens. Means: log-probability{" "}
      {number(mean(mine.map((token) => token.logprob)))}, advantage {signed(mean(mine.map((token) => token.advantage)))}, ratio{" "}
      {number(mean(mine.map((token) => token.ratio)), 4)}.
    </p>
  );
}

/** Text of a token with visible line ends and control characters. */
function spelled(text: string): string {
  return visible(text).replace(/\n/g, "↵\n").replace(/\t/g, "⇥\t");
}
