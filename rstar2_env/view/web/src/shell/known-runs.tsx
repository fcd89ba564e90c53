/* What to do with a link that names a run of another viewer: open the run of that name here, or list those that it can be. */
import { useEffect } from "preact/hooks";
import { path } from "../data/address";
import { useLoad } from "../data/hooks";
import type { Runs } from "../data/types";
import { candidates, renamed } from "./renamed";
import { go, href, useRoute } from "./router";

/** Replace the address if its names of runs are those of another viewer and known here under another one. */
export function useKnownRuns(runs: string[]): void {
  const route = useRoute();
  useEffect(() => {
    const to = renamed(route, runs);
    if (to) go(href(to.segments, to.query), true);
  }, [route, runs.join("\n")]);
}

/** For a view of a run that does not exist. */
export function OtherRuns() {
  const load = useLoad<Runs>(path("runs"));
  return load.value ? <Links runs={load.value.runs.map((row) => row.run)} /> : null;
}

function Links({ runs }: { runs: string[] }) {
  const route = useRoute();
  useKnownRuns(runs);
  const [, name = "", ...rest] = route.segments[0] === "runs" ? route.segments : [];
  const found = name && !runs.includes(name) ? candidates(name, runs) : [];
  return (
    <ul class="other-runs">
      {found.map((run) => (
        <li key={run}>
          <a href={href(["runs", run, ...rest], route.query)}>Open it in {run}</a>
        </li>
      ))}
      <li>
        <a href={href([])}>All runs</a>
      </li>
    </ul>
  );
}
