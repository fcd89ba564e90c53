/* Several runs on the same plots, and the differences between their recipes. */
import { path } from "../../data/address";
import { useLoad } from "../../data/hooks";
import type { RunRow, Runs } from "../../data/types";
import { useKnownRuns } from "../../shell/known-runs";
import { href, setQuery } from "../../shell/router";
import { Choose } from "../../ui/fields";
import { Empty, Notes, Shown } from "../../ui/states";
import type { PageProps } from "../types";
import { DifferenceTable } from "./difference";
import { Plots } from "./plots";

export function RunsSideBySide({ query }: PageProps) {
  const load = useLoad<Runs>(path("runs"));
  useKnownRuns(load.value?.runs.map((row) => row.run) ?? []);
  const wanted = (query["runs"] ?? "").split(",").filter(Boolean);
  return (
    <Shown load={load} what="Looking for runs" page>
      {(value) => {
        const known = new Map(value.runs.map((row) => [row.run, row]));
        const rows = wanted.flatMap((run) => known.get(run) ?? []);
        const missing = wanted.filter((run) => !known.has(run));
        return (
          <>
            <div class="page-head">
              <h1>Runs side by side</h1>
            </div>
            <Notes notes={missing.map((run) => `Run ${run} does not exist.`)} />
            <Chosen rows={rows} all={value.runs} />
            {rows.length ? (
              <>
                {rows.length > 1 && <RecipeDifference rows={rows} query={query} />}
                <Plots rows={rows} query={query} />
              </>
            ) : (
              <Empty title="No runs selected">Add one above, or select runs in the list of runs.</Empty>
            )}
          </>
        );
      }}
    </Shown>
  );
}

function Chosen({ rows, all }: { rows: RunRow[]; all: RunRow[] }) {
  const runs = rows.map((row) => row.run);
  const set = (next: string[]) => setQuery({ runs: next.join(",") });
  const rest = all.filter((row) => !runs.includes(row.run) && row.kind !== "evaluation" && row.kind !== "pipeline");
  return (
    <div class="toolbar">
      <ul class="chosen" aria-label="Runs on the plots">
        {rows.map((row) => (
          <li key={row.run} class="chosen-run">
            <a href={href(["runs", row.run])}>{row.name}</a>
            <button type="button" class="button ghost small" aria-label={`Remove ${row.name}`} onClick={() => set(runs.filter((run) => run !== row.run))}>
              ✕
            </button>
          </li>
        ))}
      </ul>
      {rest.length > 0 && (
        <Choose
          label="Add a run"
          value=""
          options={[{ value: "", label: "Choose…" }, ...rest.map((row) => ({ value: row.run, label: row.name }))]}
          onChange={(run) => run && set([...runs, run])}
        />
      )}
    </div>
  );
}

function RecipeDifference({ rows, query }: { rows: RunRow[]; query: Record<string, string> }) {
  const a = query["left"] ?? rows[0]?.run ?? "";
  const b = query["right"] ?? rows[1]?.run ?? "";
  const options = rows.map((row) => ({ value: row.run, label: row.name }));
  return (
    <details class="difference card" open={rows.length === 2}>
      <summary>
        <h2>Differences between recipes</h2>
      </summary>
      {rows.length > 2 && (
        <div class="toolbar">
          <Choose label="Left" value={a} options={options} onChange={(left) => setQuery({ left })} />
          <Choose label="Right" value={b} options={options} onChange={(right) => setQuery({ right })} />
        </div>
      )}
      <DifferenceTable a={a} b={b} names={[name(rows, a), name(rows, b)]} />
    </details>
  );
}

function name(rows: RunRow[], run: string): string {
  return rows.find((row) => row.run === run)?.name ?? run;
}
