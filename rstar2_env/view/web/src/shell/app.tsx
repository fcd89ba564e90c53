/* The shell: skip link, head with navigation, the page of the present address, help. */
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
    { keys: ["?"], label: "Show the shortcuts", run: openHelp },
    { keys: ["g"], label: "Go to the list of runs", run: () => go("#/") },
    { keys: ["/"], label: "Go to the search", run: () => document.querySelector<HTMLElement>("[type=search]")?.focus() },
  ]);
  const Component = page?.component;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        Skip to the content
      </a>
      <Head route={route} />
      <main id="main" ref={main} tabIndex={-1}>
        {source.note && <Notes notes={[source.note]} />}
        {Component && page ? (
          <Guard key={address}>
            <Component values={page.values} query={route.query} />
          </Guard>
        ) : (
          <Failed error={new Error(`There is no view at ${location.hash}. The list of runs is the place to start.`)} page />
        )}
      </main>
      <Help />
    </>
  );
}

/** A page that fails says so, and leaves the navigation in place. */
function Guard({ children }: { children: preact.ComponentChildren }) {
  const [error, reset] = useErrorBoundary();
  if (error) return <Failed error={error instanceof Error ? error : new Error(String(error))} again={reset} page />;
  return <>{children}</>;
}
