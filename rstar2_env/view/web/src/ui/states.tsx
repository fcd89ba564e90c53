/* Placeholders for data that is loading, missing or failed to load. */
import type { ComponentChildren } from "preact";
import { SourceError } from "../data/address";
import type { Loaded } from "../data/hooks";
import { visible } from "../format";
import { OtherRuns } from "../shell/known-runs";

export function Loading({ what = "Loading" }: { what?: string }) {
  return (
    <div class="state" role="status">
      <span class="spinner" aria-hidden="true" />
      {what}…
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state empty">
      <p class="state-title">{title}</p>
      {children && <div class="state-text">{children}</div>}
    </div>
  );
}

export function Failed({ error, again, page = false }: { error: Error; again?: () => void; page?: boolean }) {
  // If the address does not exist, trying again does not help.
  const unknown = error instanceof SourceError && error.status === 404;
  const title = unknown ? "Not found" : "Failed to load";
  return (
    <div class="state failed" role="alert">
      {page ? <h1>{title}</h1> : <p class="state-title">{title}</p>}
      <p class="state-text">{error.message}</p>
      {unknown && <OtherRuns />}
      {again && !unknown && (
        <button type="button" class="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Show the state of a load, or its value. The old value stays visible while a new one is loading. */
export function Shown<T>({
  load,
  what,
  page = false,
  children,
}: {
  load: Loaded<T>;
  what?: string;
  /** Whether this is the whole page; then the states include a heading. */
  page?: boolean;
  children: (value: T) => ComponentChildren;
}) {
  if (load.value !== null) {
    return (
      <>
        {load.error && <Notes notes={[`This may be out of date. ${load.error.message}`]} />}
        {children(load.value)}
      </>
    );
  }
  if (load.error) return <Failed error={load.error} again={load.again} page={page} />;
  return (
    <>
      {page && <h1 class="off-screen">{what ?? "Loading"}</h1>}
      <Loading {...(what ? { what } : {})} />
    </>
  );
}

/** Notes about the data: damaged files, indexing in progress. They may quote names of a run's files. */
export function Notes({ notes }: { notes: string[] }) {
  if (!notes.length) return null;
  const shown = notes.slice(0, 3);
  const rest = notes.slice(3);
  return (
    <div class="notes" role="note">
      {shown.map((note) => (
        <p key={note}>{visible(note)}</p>
      ))}
      {rest.length > 0 && (
        <details>
          <summary>{rest.length} more</summary>
          {rest.map((note) => (
            <p key={note}>{visible(note)}</p>
          ))}
        </details>
      )}
    </div>
  );
}
