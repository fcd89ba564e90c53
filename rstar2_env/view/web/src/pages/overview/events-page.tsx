/* Events of a run, newest first, and its model card. */
import type { RunEvent } from "../../data/types";
import { moment, number, plain, short } from "../../format";
import { Chip, type Tone } from "../../ui/chip";
import { Empty } from "../../ui/states";
import type { PageProps } from "../types";
import { RunFrame } from "../run-frame";

const TONES: Record<string, Tone> = { finished: "good", failed: "bad", interrupted: "warn", note: "warn", resumed: "info", started: "info" };

export function EventsPage({ values }: PageProps) {
  return (
    <RunFrame run={values["run"] ?? ""} tab="events">
      {(detail) => (
        <>
          {detail.events.length ? <Events events={detail.events} /> : <Empty title="No events yet" />}
          {detail.model_card && (
            <section aria-labelledby="card">
              <h2 class="section-title" id="card">
                Model card
              </h2>
              <pre class="card model-card" tabIndex={0} aria-label="Model card">
                {detail.model_card}
              </pre>
            </section>
          )}
        </>
      )}
    </RunFrame>
  );
}

function Events({ events }: { events: RunEvent[] }) {
  return (
    <div class="card scroll-x" tabIndex={0} role="region" aria-label="Events">
      <table class="plain-table">
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col" class="right">
              Step
            </th>
            <th scope="col">Event</th>
            <th scope="col">Details</th>
          </tr>
        </thead>
        <tbody>
          {[...events].reverse().map((event, at) => (
            <tr key={at}>
              <td class="number no-wrap">{moment(event.time)}</td>
              <td class="right">{event.step}</td>
              <td>
                <Chip tone={TONES[event.event] ?? "quiet"}>{event.event}</Chip>
              </td>
              <td>{more(event)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Figures of an evaluation shown in the list of events; plots show all of them. */
const SHOWN_FIGURES = ["pass_rate", "reward", "tool_error_share", "broken_format", "turns", "tokens", "episodes"];

function more(event: RunEvent): string {
  const figures = event["figures"];
  if (event.event === "evaluation" && typeof figures === "object" && figures !== null) {
    const known = Object.entries(figures).filter(([name]) => SHOWN_FIGURES.includes(name));
    if (known.length) return written(Object.fromEntries(known.sort(([a], [b]) => SHOWN_FIGURES.indexOf(a) - SHOWN_FIGURES.indexOf(b))));
  }
  return Object.entries(event)
    .filter(([name]) => !["event", "time", "step"].includes(name))
    .map(([name, value]) => `${name}: ${written(value)}`)
    .join("; ");
}

function written(value: unknown): string {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return Object.entries(value)
      .map(([name, inner]) => `${name} ${typeof inner === "number" ? number(inner) : plain(inner)}`)
      .join(", ");
  }
  return short(plain(value), 2000);
}
