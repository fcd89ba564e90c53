/* The list of runs with their progress; runs can be selected for comparison. */
import { useState } from "preact/hooks";
import { path } from "../data/address";
import { useLoad } from "../data/hooks";
import type { RunRow, Runs } from "../data/types";
import { ago, count, many, moment, number, percent } from "../format";
import { go, href } from "../shell/router";
import { Chip, stateTone } from "../ui/chip";
import { TextField } from "../ui/fields";
import { Empty, Notes, Shown } from "../ui/states";

export function RunsPage() {
  const load = useLoad<Runs>(path("runs"));
  return (
    <>
      <div class="page-head">
        <h1>Runs</h1>
      </div>
      <Shown load={load} what="Looking for runs">
        {(value) => <List runs={value.runs} roots={value.roots} />}
      </Shown>
    </>
  );
}

function List({ runs, roots }: { runs: RunRow[]; roots: string[] }) {
  const [chosen, setChosen] = useState<string[]>([]);
  const [words, setWords] = useState("");
  if (!runs.length) {
    return (
      <Empty title="No runs here yet">
        <p>
          {roots.length ? `There are no run folders below ${roots.join(", ")}. ` : ""}
          <code>rstar2 train</code>, <code>rstar2 eval --out</code> and pipelines write run folders, which appear here automatically.
        </p>
      </Empty>
    );
  }
  const found = ordered(runs).filter((row) => `${row.name} ${row.path} ${row.recipe} ${row.kind}`.toLowerCase().includes(words.toLowerCase()));
  const toggle = (run: string) =>
    setChosen(chosen.includes(run) ? chosen.filter((one) => one !== run) : [...chosen, run]);
  const [a = "", b = ""] = chosen;
  return (
    <>
      <div class="toolbar">
        {runs.length > 6 && <TextField label="Search" type="search" value={words} onChange={setWords} wide />}
        <button
          type="button"
          class="button"
          disabled={chosen.length < 2}
          onClick={() => go(href(["overview"], { runs: chosen.join(",") }))}
        >
          Curves side by side{chosen.length > 1 && ` (${chosen.length})`}
        </button>
        <button type="button" class="button" disabled={chosen.length !== 2} onClick={() => go(href(["compare"], { a, b }))}>
          Compare by problem
        </button>
        <p class="quiet" role="status">
          {chosen.length ? `${many(chosen.length, "run")} selected` : "Select two or more runs to see them side by side."}
        </p>
      </div>
      <ul class="run-list" aria-label="Runs">
        {found.map((row) => (
          <Item key={row.run} row={row} chosen={chosen.includes(row.run)} toggle={() => toggle(row.run)} child={runs.some((one) => one.run === row.parent)} />
        ))}
      </ul>
      {!found.length && <Empty title="No matching runs">Change or clear the search.</Empty>}
    </>
  );
}

function Item({ row, chosen, toggle, child }: { row: RunRow; chosen: boolean; toggle: () => void; child: boolean }) {
  const figures = row.figures ?? {};
  const episodes = row.episodes.train + row.episodes.eval;
  return (
    <li class={`card run-item${child ? " child" : ""}`}>
      <input type="checkbox" checked={chosen} onChange={toggle} aria-label={`Select ${row.name}`} />
      <div>
        <a class="run-name" href={href(["runs", row.run])}>
          {row.name}
        </a>
        <p class="run-path">{row.path}</p>
        <Notes notes={row.notes.slice(0, 1)} />
      </div>
      <div class="chips">
        <Chip>{row.recipe || row.kind}</Chip>
        <Chip tone={stateTone(row.state)} {...(row.error ? { title: row.error } : {})}>
          {row.state}
        </Chip>
        {row.seed !== null && row.seed !== undefined && <Chip>seed {row.seed}</Chip>}
      </div>
      <dl>
        <div>
          <dt>{row.kind === "evaluation" ? "Episodes" : "Steps"}</dt>
          <dd>
            {row.kind === "evaluation" ? count(episodes) : count(row.steps)}
            {row.kind !== "evaluation" && row.planned_steps ? <span class="quiet"> of {count(row.planned_steps)}</span> : null}
          </dd>
        </div>
        {row.kind !== "evaluation" && episodes > 0 && (
          <div>
            <dt>Episodes</dt>
            <dd>{count(episodes)}</dd>
          </div>
        )}
        {figures.pass_rate !== null && figures.pass_rate !== undefined && (
          <div>
            <dt>Success</dt>
            <dd>{percent(figures.pass_rate)}</dd>
          </div>
        )}
        {figures.reward !== null && figures.reward !== undefined && (
          <div>
            <dt>Reward</dt>
            <dd>{number(figures.reward)}</dd>
          </div>
        )}
        {figures.tool_error_share !== null && figures.tool_error_share !== undefined && (
          <div>
            <dt>Failed calls</dt>
            <dd>{percent(figures.tool_error_share)}</dd>
          </div>
        )}
      </dl>
      <p class="quiet" title={`Started ${moment(row.started)}, updated ${moment(row.updated)}`}>
        {ago(row.updated ?? row.started)}
      </p>
    </li>
  );
}

/** Newest first; the parts of a run follow it. */
function ordered(runs: RunRow[]): RunRow[] {
  const known = new Set(runs.map((row) => row.run));
  const newest = [...runs].sort((a, b) => String(b.started ?? "").localeCompare(String(a.started ?? "")));
  const parts = new Map<string, RunRow[]>();
  for (const row of [...runs].sort((a, b) => String(a.started ?? "").localeCompare(String(b.started ?? "")))) {
    if (row.parent && known.has(row.parent)) parts.set(row.parent, [...(parts.get(row.parent) ?? []), row]);
  }
  const seen = new Set<string>();
  const found: RunRow[] = [];
  const add = (row: RunRow) => {
    if (seen.has(row.run)) return;
    seen.add(row.run);
    found.push(row);
    for (const part of parts.get(row.run) ?? []) add(part);
  };
  for (const row of newest) if (!row.parent || !known.has(row.parent)) add(row);
  for (const row of newest) add(row);
  return found;
}
