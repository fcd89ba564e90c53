/* The stages of a pipeline, in order, with states and links to their runs. */
import type { Stage } from "../../data/types";
import { number, seconds } from "../../format";
import { href } from "../../shell/router";
import { Chip, stateTone } from "../../ui/chip";
import { Empty } from "../../ui/states";

export function Stages({ stages }: { stages: Stage[] }) {
  if (!stages.length) return <Empty title="No stage has started yet" />;
  return (
    <section aria-labelledby="stages">
      <h2 class="section-title" id="stages">
        Stages
      </h2>
      <ol class="stages">
        {stages.map((stage, at) => (
          <li key={stage.name} class={`card stage ${stage.state}`}>
            <span class="stage-number" aria-hidden="true">
              {at + 1}
            </span>
            <div class="stage-body">
              <h3>{stage.run ? <a href={href(["runs", stage.run])}>{stage.name}</a> : stage.name}</h3>
              <p class="quiet">
                {stage.kind}
                {stage.seconds ? `, ${seconds(stage.seconds)}` : ""}
              </p>
              {stage.error && <p class="stage-error">{stage.error}</p>}
              {Object.keys(stage.figures).length > 0 && (
                <p class="stage-figures">
                  {Object.entries(stage.figures)
                    .slice(0, 6)
                    .map(([name, value]) => `${name} ${number(value)}`)
                    .join(" · ")}
                </p>
              )}
            </div>
            <Chip tone={stage.state === "waiting" ? "quiet" : stateTone(stage.state)}>{stage.state}</Chip>
          </li>
        ))}
      </ol>
    </section>
  );
}
