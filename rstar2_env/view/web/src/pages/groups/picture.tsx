/* Drawing of a group: correct answers above, wrong answers below, positioned by the value used by the selector. */
import type { GroupEpisode } from "../../data/group-types";
import { number } from "../../format";
import { go, href } from "../../shell/router";
import { letterOf, Sign } from "./marks";
import { label } from "./words";

const WIDE = 720;
const LANE = 56;
const LEFT = 84;
/** Width of a slot on the axis, and the maximum number of marks stacked in it. */
const SPOT = 14;
const MOST = 5;

export function Picture({ episodes, run }: { episodes: GroupEpisode[]; run: string }) {
  const along = episodes.some((one) => typeof one.weighed?.["penalty"] === "number") ? "penalty" : null;
  const most = along ? Math.max(1, ...episodes.map((one) => one.weighed?.[along] ?? 0)) : 1;
  const lanes: [string, GroupEpisode[]][] = [
    ["Correct", episodes.filter((one) => one.correct)],
    ["Wrong", episodes.filter((one) => !one.correct)],
  ];
  const height = 2 * LANE + 36;
  const place = (one: GroupEpisode, at: number, of: number) =>
    LEFT + 12 + (WIDE - LEFT - 40) * (along ? (one.weighed?.[along] ?? most) / most : of > 1 ? at / (of - 1) : 0.5);
  return (
    <svg class="group-picture" viewBox={`0 0 ${WIDE} ${height}`} role="img" aria-label={describe(lanes, along)}>
      {lanes.map(([name, members], lane) => {
        const middle = lane * LANE + LANE / 2;
        const taken = new Map<number, number>();
        return (
          <g key={name}>
            <text x={0} y={middle + 4} class="axis-text">
              {name} {members.length}
            </text>
            <line class="lane" x1={LEFT} x2={WIDE - 16} y1={middle} y2={middle} />
            {members.map((one, at) => {
              const own = place(one, at, members.length);
              const first = Math.round(own / SPOT);
              let spot = first;
              // If a slot is full, use the next one towards the middle, so marks do not overlap.
              while ((taken.get(spot) ?? 0) >= MOST) spot += own > WIDE / 2 ? -1 : 1;
              const x = spot === first ? own : spot * SPOT;
              const stack = taken.get(spot) ?? 0;
              taken.set(spot, stack + 1);
              const aside = Math.ceil(stack / 2) * 11;
              const y = middle + (stack % 2 ? aside : -aside);
              return (
                <g key={one.key} class="dot" onClick={() => go(href(["runs", run, "episodes", one.key]))}>
                  <title>{`${one.member}: ${one.kept ? "kept" : `dropped (${one.reason})`}${along ? `, ${along} ${number(one.weighed?.[along] ?? null)}` : ""}`}</title>
                  <Sign letter={letterOf(one)} x={x} y={y} size={5.5} />
                </g>
              );
            })}
          </g>
        );
      })}
      {along && (
        <g class="axis-text">
          {[0, 0.25, 0.5, 0.75, 1].map((part) => (
            <text key={part} x={LEFT + 12 + (WIDE - LEFT - 40) * part} y={height - 20} text-anchor="middle">
              {number(part * most)}
            </text>
          ))}
          <text x={WIDE - 16} y={height - 5} text-anchor="end">
            {label(along)} →
          </text>
        </g>
      )}
    </svg>
  );
}

function describe(lanes: [string, GroupEpisode[]][], along: string | null): string {
  const parts = lanes.map(
    ([name, members]) => `${name}: ${members.length}, of which ${members.filter((one) => one.kept).length} kept`,
  );
  return `${parts.join(". ")}.${along ? ` Episodes are positioned by ${along}; see the table below for the values.` : ""}`;
}
