/* Types of the responses of server and export: the HTTP API of docs/viewer-reference.md. */

export type Query = Record<string, string | number | undefined>;

export interface Figures {
  pass_rate?: number | null;
  reward?: number | null;
  tool_error_share?: number | null;
}

export interface Progress {
  done: number;
  total: number;
}

export interface RunRow {
  run: string;
  name: string;
  path: string;
  kind: "training" | "sft" | "evaluation" | "pipeline";
  recipe: string;
  parent: string | null;
  group: string;
  seed: number | null;
  figures: Figures | null;
  started: string | null;
  updated: string | null;
  state: "running" | "finished" | "interrupted" | "failed" | "stopped";
  error: string | null;
  steps: number;
  planned_steps: number | null;
  episodes: { train: number; eval: number };
  evaluations: number;
  checkpoints: number;
  has_tokens: boolean;
  indexing: Progress | null;
  searchable: Progress | null;
  notes: string[];
}

export interface Runs {
  runs: RunRow[];
  roots: string[];
  exported: boolean;
  version: string;
}

export interface RunEvent {
  event: string;
  time: string;
  step: number;
  /** Details in words. */
  details: string;
  [key: string]: unknown;
}

/** Events of a step that the curves mark, in order, such as `evaluation`. */
export interface Mark {
  step: number;
  events: string[];
}

export interface Stage {
  name: string;
  kind: string;
  /** State of a run, or `waiting`. */
  state: string;
  seconds: number | null;
  run: string | null;
  figures: Record<string, number | null>;
  error: string | null;
  started: string | null;
  updated: string | null;
}

export interface Column {
  name: string;
  label: string;
  type: "number" | "text" | "flag" | "counts";
  filter: "range" | "values" | "flag" | "text" | null;
  sortable: boolean;
  /** Values, each with the number of episodes that its filter selects, in all and by split. */
  values: { value: string; count: number; splits: Counts }[] | null;
  min: number | null;
  max: number | null;
}

export type Counts = Record<string, number>;

export interface EpisodeFigures {
  episodes: number;
  problems: number;
  success: number | null;
  reward: number | null;
  tool_error_share: number | null;
  tool_error_share_correct: number | null;
  tokens: number | null;
  turns: number | null;
  calls: number | null;
  ends: Counts;
  statuses: Counts;
  injected: Counts;
}

/** A figure of the health strip; its `state` follows from the diagnosis checks that use it. */
export interface HealthSign {
  label: string;
  figure: string;
  percent: boolean;
  last: number;
  step: number;
  values: number[];
  state: "ok" | "watch" | "problem" | "unknown";
  says: string[];
}

/** A finding of the diagnosis. */
export interface Finding {
  check: string;
  title: string;
  severity: "error" | "warning" | "note";
  since: number;
  /** Last step at which it held; null if it still holds. */
  until: number | null;
  says: string;
  cause: string;
  change: string[];
  otherwise: string;
  /** Names of the checks whose findings usually cause this one; an exported run of an earlier version lacks them. */
  caused_by?: string[];
  /** Keys of episodes that show it. */
  episodes: string[];
}

/** The findings of a run; only `again_s` until they are computed for the first time. */
export interface FindingsAnswer {
  /** Seconds after which to request newer findings; null if these are for the run's present state. */
  again_s: number | null;
  summary?: string;
  /** Reason why the run cannot be diagnosed; empty if it can. */
  failed?: string;
  findings?: Finding[];
  silent?: string[];
  not_recorded?: Record<string, string[]>;
}

export interface RunDetail extends RunRow {
  config: Record<string, unknown>;
  recipe_parts: Record<string, unknown> | null;
  events: RunEvent[];
  summary: Record<string, unknown> | null;
  verdict: string[];
  health: HealthSign[];
  /** Sentences about the run, each with the filter that selects its training episodes, the filters of the most frequent
      kinds of these episodes (`parts`), and the figure whose plot shows more (`metric`). */
  sentences: { text: string; filter: Record<string, string> | null; parts: Record<string, Record<string, string>>; metric: string | null }[];
  stages: Stage[];
  model_card: string | null;
  metric_names: string[];
  episode_figures: { train: EpisodeFigures | null; eval: EpisodeFigures | null };
  columns: Column[];
}

export type Numbers = (number | null)[];

export interface Metrics {
  steps: number[];
  series: Record<string, Numbers>;
  /** Events that curves mark. */
  marks: Mark[];
}

/** Counts by step: one list per name. */
export interface Statuses {
  steps: number[];
  episodes: number[];
  statuses: Record<string, number[]>;
  ends: Record<string, number[]>;
  reasons: Record<string, number[]>;
  injected: Record<string, number[]>;
  /** What followed the first failed call of an episode: the next call worked or failed, or the episode was answered or ended. */
  after_errors: Record<string, number[]>;
  /** Number of groups by round: 0 is the first round, the others are refills. */
  rounds: Record<string, number[]>;
}

/** Figures of the episodes that match a filter. */
export interface Aggregates {
  figures: EpisodeFigures | null;
  steps: number[];
  episodes: number[];
  success: Numbers;
}

export interface Page<Row> {
  total: number;
  rows: Row[];
  partial?: boolean;
}

export interface EpisodeRow {
  key: string;
  split: "train" | "eval";
  step: number;
  group: number;
  member: number;
  round: number;
  kept: boolean | null;
  reason: string;
  advantage: number | null;
  reward: number | null;
  correct: boolean | null;
  end: string;
  turns: number;
  policy_tokens: number;
  calls: number;
  errors: number;
  statuses: Counts;
  injected: Counts;
  last_status: string;
  after_error: string;
  problem_id: string;
  task: string;
  source: string;
  problem_source: string;
  difficulty: string | null;
  seconds: number | null;
  answer: string | null;
  question: string;
  version: number;
}

export interface Message {
  role: string;
  content: string;
}

export interface ToolCall {
  name?: string;
  status: string;
  error_type?: string | null;
  exit_code?: number | null;
  truncated?: boolean;
  injected?: boolean;
  [key: string]: unknown;
}

export interface Turn {
  start: number;
  stop: number;
  reward: number | null;
  statuses: string[];
  version: number;
  info: { tool_calls?: ToolCall[]; [key: string]: unknown };
  observation?: string;
  entropy?: number;
  stale?: boolean;
}

export interface Mate {
  key: string;
  member: number;
  kept: boolean | null;
  reward: number | null;
  correct: boolean | null;
}

/** Verdict of the verifier on the answer; `method` is empty if unknown. */
export interface VerdictOfLine {
  reason: string;
  method: string;
}

/** A full record from the run folder, with additions from the index. Any key of the record may be missing in a file. */
export interface EpisodeLine {
  key: string;
  row: EpisodeRow;
  question: string;
  mates: Mate[];
  next: string | null;
  previous: string | null;
  has_tokens: boolean;
  gold: string | null;
  verdict: VerdictOfLine | null;
  notes: string[];
  messages?: Message[];
  steps?: Turn[];
  rewards?: Record<string, number | null>;
  statuses?: string[];
  injected?: string[];
  [key: string]: unknown;
}

export interface Token {
  text: string;
  id: number;
  mask: number;
  logprob: number | null;
  advantage: number | null;
  ratio: number | null;
}

export interface Tokens {
  tokens: Token[];
  prompt: string | null;
  prompt_ids: number;
  note: string | null;
}

export interface Difference {
  options: { path: string; a: unknown; b: unknown }[];
}

export interface Changes {
  cursor: string | number;
  changed: string[];
  runs?: boolean;
}
