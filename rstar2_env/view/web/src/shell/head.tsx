/* The head of every page: breadcrumbs, live state, theme. */
import { useEffect, useReducer } from "preact/hooks";
import { path } from "../data/address";
import { useDataContext, useLoad } from "../data/hooks";
import type { Runs } from "../data/types";
import { openHelp } from "./help";
import { href, type Route, runOf } from "./router";
import { type Choice, chooseTheme, useTheme } from "./theme";

/** Titles of views of several runs, by the first segment of the address. */
const PLACES: Record<string, string> = { overview: "Runs side by side", compare: "Compare", pair: "Two episodes" };

export function Head({ route }: { route: Route }) {
  const runs = useLoad<Runs>(path("runs")).value?.runs ?? [];
  const [place = ""] = route.segments;
  const run = runOf(route);
  const name = runs.find((row) => row.run === run)?.name ?? run;
  return (
    <header class="head">
      <nav class="crumbs" aria-label="Main">
        <a class="brand" href="#/" aria-current={place ? undefined : "page"}>
          rstar2 <span>view</span>
        </a>
        {run && (
          <>
            <span class="crumb-sign" aria-hidden="true">
              /
            </span>
            <a class="crumb" href={href(["runs", run])}>
              {name}
            </a>
          </>
        )}
        {PLACES[place] && (
          <>
            <span class="crumb-sign" aria-hidden="true">
              /
            </span>
            <span class="crumb">{PLACES[place]}</span>
          </>
        )}
      </nav>
      <div class="head-tools">
        <LiveSign />
        <ThemeChoice />
        <button type="button" class="button ghost icon" onClick={openHelp} aria-label="Keyboard shortcuts">
          ?
        </button>
      </div>
    </header>
  );
}

const WORDS = { live: "Live", paused: "Paused", lost: "Disconnected", exported: "Exported" } as const;
const TITLES = {
  live: "The page updates automatically. Press to pause.",
  paused: "Updates are paused. Press to resume.",
  lost: "The server does not respond; the page keeps trying. Press to pause.",
  exported: "An exported page: its data does not change.",
} as const;

function LiveSign() {
  const { live } = useDataContext();
  const [, render] = useReducer((turn: number) => turn + 1, 0);
  useEffect(() => live.subscribe(() => render(0)), [live]);
  const sign = (
    <>
      <span class={`live-dot ${live.state}`} aria-hidden="true" />
      <span class="live-word">{WORDS[live.state]}</span>
    </>
  );
  if (live.state === "exported") {
    return (
      <span class="live" title={TITLES.exported}>
        {sign}
      </span>
    );
  }
  return (
    <button
      type="button"
      class="button ghost live"
      onClick={() => live.toggle()}
      title={TITLES[live.state]}
    >
      {sign}
    </button>
  );
}

const NEXT: Record<Choice, Choice> = { system: "light", light: "dark", dark: "system" };
const SIGNS: Record<Choice, string> = { system: "◐", light: "☀", dark: "☾" };

function ThemeChoice() {
  const { choice } = useTheme();
  return (
    <button
      type="button"
      class="button ghost icon"
      onClick={() => chooseTheme(NEXT[choice])}
      aria-label={`Theme: ${choice}. Change to ${NEXT[choice]}`}
      title={`Theme: ${choice}`}
    >
      {SIGNS[choice]}
    </button>
  );
}
