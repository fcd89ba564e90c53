/* The health strip: a few figures of a run with their curve and the judgement of the diagnosis, each a link to its plot. */
import type { HealthSign, RunDetail } from "../../data/types";
import { count, number, percent } from "../../format";
import { href } from "../../shell/router";
import { Chip, type Tone } from "../../ui/chip";
import { HEALTH } from "../../words";
import { Spark } from "../problems/bar";

const TONES: Record<HealthSign["state"], Tone> = { ok: "good", watch: "warn", problem: "bad", unknown: "quiet" };

export function Health({ detail }: { detail: RunDetail }) {
  if (!detail.health.length) return null;
  return (
    <section class="health" aria-label="Health">
      <ul class="health-signs">
        {detail.health.map((sign) => (
          <Sign key={sign.figure} sign={sign} run={detail.run} />
        ))}
      </ul>
    </section>
  );
}

function Sign({ sign, run }: { sign: HealthSign; run: string }) {
  const form = sign.percent ? percent : number;
  return (
    <li class="card health-sign">
      <a href={href(["runs", run], { metric: sign.figure })} title={`Step ${count(sign.step)}: show the plot`}>
        {sign.label}
      </a>
      <span class="health-value">
        <span class="number">{form(sign.last)}</span> <Chip tone={TONES[sign.state]}>{HEALTH[sign.state]}</Chip>
      </span>
      <Spark values={sign.values} form={form} {...(sign.percent ? {} : { low: Math.min(0, ...sign.values), high: Math.max(...sign.values) })} />
    </li>
  );
}
