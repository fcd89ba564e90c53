/* Events of a run, newest first, and its model card. */
import type { RunEvent } from "../../data/types";
import { moment, visible } from "../../format";
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
              <pre class="card model-card" role="group" tabIndex={0} aria-label="Model card">
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
              <td class="no-wrap">
                <Chip tone={TONES[event.event] ?? "quiet"}>{event.event}</Chip>
              </td>
              <td class="long">{visible(event.details)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
