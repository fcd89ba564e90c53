/* The shell: skip link, head with navigation, the page for the current address, help. */
import { useEffect, useErrorBoundary, useRef } from "preact/hooks";
import { useDataContext } from "../data/hooks";
import { find } from "../pages/registry";
import { Failed, Notes } from "../ui/states";
import { Head } from "./head";
import { Help, openHelp } from "./help";
import { useShortcuts } from "./keyboard";
import { go, useRoute } from "./router";

export function App() {
  const route = useRoute();
  const { source } = useDataContext();
  const page = find(route.segments);
  const main = useRef<HTMLElement>(null);
  const address = route.segments.join("/");
  const first = useRef(true);
  useEffect(() => {
    document.title = [...(page?.title(page.values) ?? ["Not found"]), "rstar2 view"].join(" · ");
    if (first.current) first.current = false;
    else if (!main.current?.contains(document.activeElement)) main.current?.focus({ preventScroll: true });
    scrollTo({ top: 0 });
  }, [address]);
  useShortcuts([
    { keys: ["?"], label: "Show shortcuts", run: openHelp },
    { keys: ["g"], label: "Go to the list of runs", run: () => go("#/") },
    { keys: ["/"], label: "Go to the search", run: () => document.querySelector<HTMLElement>("[type=search]")?.focus() },
  ]);
  const Component = page?.component;
  const skip = (event: Event) => {
    event.preventDefault();
    main.current?.focus();
  };
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to content
      </a>
      <Head route={route} />
      <main id="main" ref={main} tabIndex={-1}>
        {source.note && <Notes notes={[`This page contains only part of the data. ${source.note}`]} />}
        {Component && page ? (
          <ErrorBoundary key={address}>
            <Component values={page.values} query={route.query} />
          </ErrorBoundary>
        ) : (
          <Failed error={new Error(`There is no view at ${location.hash}. Start from the list of runs.`)} page />
        )}
      </main>
      <Help />
    </>
  );
}

/** Show an error in place of a page that fails; the navigation stays usable. */
function ErrorBoundary({ children }: { children: preact.ComponentChildren }) {
  const [error, reset] = useErrorBoundary();
  if (error) return <Failed error={error instanceof Error ? error : new Error(String(error))} again={reset} page />;
  return <>{children}</>;
}
