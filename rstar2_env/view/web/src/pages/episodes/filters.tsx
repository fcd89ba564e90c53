/* Filters of the table of episodes. They are part of the address, so links include them. */
import { useRef, useState } from "preact/hooks";
import type { Column, RunDetail } from "../../data/types";
import { count } from "../../format";
import { setQuery } from "../../shell/router";
import { AFTER_ERROR } from "../../words";
import { Choose, type Option, TextField } from "../../ui/fields";

const ANY: Option = { value: "", label: "Any" };
const ANSWER: Option[] = [ANY, { value: "1", label: "correct" }, { value: "0", label: "wrong" }];
const KEPT: Option[] = [ANY, { value: "1", label: "kept" }, { value: "0", label: "dropped" }];

const FAILED: Option = { value: "error", label: "any error" };
/** Filters that are shown even if all episodes with a value have the same. */
const MAY_BE_ONE = new Set(["reason", "injected", "after_error"]);

/** Labels of the filters. */
export const FILTERS: Record<string, string> = {
  q: "Text",
  split: "Split",
  step: "Steps",
  correct: "Answer",
  kept: "Selection",
  status: "Call",
  end: "End",
  problem_q: "Problem",
  problem: "Problem",
  reason: "Drop reason",
  last: "Last call",
  after_error: "After a failed call",
  injected: "Injected fault",
  task: "Task",
  source: "Played by",
  problem_source: "Source",
  difficulty: "Difficulty",
  group: "Group",
  min_reward: "Reward from",
  max_reward: "Reward to",
  min_policy_tokens: "Tokens from",
  max_policy_tokens: "Tokens to",
  min_turns: "Turns from",
  max_turns: "Turns to",
  min_advantage: "Advantage from",
  max_advantage: "Advantage to",
};

const RANGES = ["reward", "policy_tokens", "turns", "advantage"];
const CHOICES = ["reason", "last", "after_error", "injected", "task", "source", "problem_source", "difficulty"];

/** The filters in a query, without other parameters. */
export function filtersOf(query: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(query).filter(([name, value]) => name in FILTERS && value));
}

export function Filters({ detail, query }: { detail: RunDetail; query: Record<string, string> }) {
  const columns = new Map(detail.columns.map((column) => [column.name, column]));
  const search = useRef<HTMLInputElement>(null);
  const set = (name: string) => (value: string) => setQuery({ [name]: value });
  const both = detail.episodes.train > 0 && detail.episodes.eval > 0;
  const more = Object.keys(filtersOf(query)).some((name) => CHOICES.includes(name) || /^(min|max)_|^problem_q$/.test(name));
  const [open, setOpen] = useState(more);
  return (
    <search>
      <div class={`toolbar first-filters${open ? " open" : ""}`}>
        <TextField label="Search in texts" type="search" placeholder='words, or "a phrase"' value={query["q"] ?? ""} onChange={set("q")} wide inputRef={search} />
        {both && (
          <Choose
            label="Split"
            value={query["split"] ?? ""}
            options={[ANY, { value: "train", label: "training" }, { value: "eval", label: "held out" }]}
            onChange={set("split")}
          />
        )}
        {detail.steps > 0 && <TextField label="Steps" placeholder="7, 3-9, 20-" value={query["step"] ?? ""} onChange={set("step")} />}
        <Choose label="Answer" value={query["correct"] ?? ""} options={ANSWER} onChange={set("correct")} />
        {detail.episodes.train > 0 && <Choose label="Selection" value={query["kept"] ?? ""} options={KEPT} onChange={set("kept")} />}
        <Choose
          label="Has a call"
          value={query["status"] ?? ""}
          options={[ANY, FAILED, ...valuesOf(columns.get("statuses"))]}
          onChange={set("status")}
        />
        <Choose label="End" value={query["end"] ?? ""} options={[ANY, ...valuesOf(columns.get("end"))]} onChange={set("end")} />
        <button type="button" class="button" aria-expanded={open} aria-controls="more-filters" onClick={() => setOpen(!open)}>
          {open ? "Fewer filters" : "More filters"}
        </button>
      </div>
      <div class="toolbar more-filters" id="more-filters" hidden={!open}>
        <TextField label="Problem or its id" value={query["problem_q"] ?? ""} onChange={set("problem_q")} />
        {CHOICES.map((name) => {
          const options = optionsOf(columns, name);
          return options.length > (MAY_BE_ONE.has(name) ? 0 : 1) || query[name] ? (
            <Choose key={name} label={FILTERS[name] ?? name} value={query[name] ?? ""} options={[ANY, ...options]} onChange={set(name)} />
          ) : null;
        })}
        {RANGES.filter((name) => !detail.columns.length || columns.has(name)).flatMap((name) =>
          ["min", "max"].map((end) => (
            <TextField
              key={`${end}_${name}`}
              type="number"
              label={FILTERS[`${end}_${name}`] ?? name}
              placeholder={edge(columns.get(name), end)}
              value={query[`${end}_${name}`] ?? ""}
              onChange={set(`${end}_${name}`)}
            />
          )),
        )}
      </div>
      <Active query={query} />
    </search>
  );
}

/** Active filters, each with a button to remove it. */
function Active({ query }: { query: Record<string, string> }) {
  const active = Object.entries(filtersOf(query));
  if (!active.length) return null;
  return (
    <div class="active-filters">
      {active.map(([name, value]) => (
        <button key={name} type="button" class="button small" onClick={() => setQuery({ [name]: null })} aria-label={`Remove the filter ${FILTERS[name]}: ${value}`}>
          {FILTERS[name]}: {words(name, value)} <span aria-hidden="true">✕</span>
        </button>
      ))}
      {active.length > 1 && (
        <button type="button" class="button small ghost" onClick={() => setQuery(Object.fromEntries(active.map(([name]) => [name, null])))}>
          Clear all
        </button>
      )}
    </div>
  );
}

function words(name: string, value: string): string {
  const named = { correct: ANSWER, kept: KEPT }[name]?.find((option) => option.value === value);
  if (name === "last" && value === "error") return FAILED.label;
  return named?.label ?? (name === "after_error" ? (AFTER_ERROR[value] ?? value) : value);
}

/** Options of a filter that an episode has exactly one value of. */
function optionsOf(columns: Map<string, Column>, name: string): Option[] {
  if (name === "last") return [FAILED, ...valuesOf(columns.get("last_status"))].filter((_, __, all) => all.length > 1);
  const options = valuesOf(columns.get(name));
  return name === "after_error" ? options.map(({ value, label }) => ({ value, label: label.replace(value, AFTER_ERROR[value] ?? value) })) : options;
}

function valuesOf(column: Column | undefined): Option[] {
  return (column?.values ?? [])
    .filter(({ value }) => value !== "")
    .map(({ value, count: many }) => ({ value, label: `${value} (${count(many)})` }));
}

function edge(column: Column | undefined, end: string): string {
  const value = end === "min" ? column?.min : column?.max;
  return value === null || value === undefined ? "" : String(Math.round(value * 1000) / 1000);
}
