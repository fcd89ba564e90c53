/* Drawing of a group: correct answers above, wrong answers below, positioned by the value used by the selector. */
import { useRef } from "preact/hooks";
import type { GroupEpisode } from "../../data/group-types";
import { number } from "../../format";
import { go, href } from "../../shell/router";
import { useWide } from "../../ui/wide";
import { letterOf, Sign } from "./marks";
import { label } from "./words";
import { selectionWords } from "../../words";

/** Width of the drawing: that of its place within these bounds, so that its text keeps its size. */
const LEAST_WIDE = 280;
const MOST_WIDE = 720;
const LEFT = 84;
/** Width of a slot on the axis, in which marks are stacked. */
const SPOT = 14;
/** Height of a mark in a stack, and the height that a lane has at least and at most. */
const STEP = 12;
const LOW_LANE = 56;
const HIGH_LANE = 132;

export function Picture({ episodes, run }: { episodes: GroupEpisode[]; run: string }) {
  const frame = useRef<HTMLDivElement>(null);
  const wide = Math.max(LEAST_WIDE, Math.min(MOST_WIDE, useWide(frame)));
  const along = episodes.some((one) => typeof one.weighed?.["penalty"] === "number") ? "penalty" : null;
  const most = along ? Math.max(1, ...episodes.map((one) => one.weighed?.[along] ?? 0)) : 1;
  const lanes: [string, GroupEpisode[]][] = [
    ["Correct", episodes.filter((one) => one.correct)],
    ["Wrong", episodes.filter((one) => !one.correct)],
  ];
  const place = (one: GroupEpisode, at: number, of: number) =>
    LEFT + 12 + (wide - LEFT - 40) * (along ? (one.weighed?.[along] ?? most) / most : of > 1 ? at / (of - 1) : 0.5);
  // Marks at one place are stacked, never moved along the axis: their place is their value.
  const stacks = lanes.map(([, members]) => {
    const slots = new Map<number, number>();
    return members.map((one, at) => {
      const slot = Math.round(place(one, at, members.length) / SPOT);
      const before = slots.get(slot) ?? 0;
      slots.set(slot, before + 1);
      return { one, x: place(one, at, members.length), slot, before, slots };
    });
  });
  const most_stacked = Math.max(1, ...stacks.flatMap((stack) => stack.map(({ before }) => before + 1)));
  const lane_height = Math.min(HIGH_LANE, Math.max(LOW_LANE, most_stacked * STEP + 8));
  const height = 2 * lane_height + 36;
  return (
    <div ref={frame}>
      <svg class="group-picture" viewBox={`0 0 ${wide} ${height}`} role="img" aria-label={describe(lanes, along)}>
        {lanes.map(([name, members], lane) => {
          const middle = lane * lane_height + lane_height / 2;
          return (
            <g key={name}>
              <text x={0} y={middle + 4} class="axis-text">
                {name} {members.length}
              </text>
              <line class="lane" x1={LEFT} x2={wide - 16} y1={middle} y2={middle} />
              {(stacks[lane] ?? []).map(({ one, x, slot, before, slots }) => {
                const step = Math.min(STEP, (lane_height - 8) / (slots.get(slot) ?? 1));
                const y = middle + (before % 2 ? 1 : -1) * Math.ceil(before / 2) * step;
                return (
                  <g key={one.key} class="dot" onClick={() => go(href(["runs", run, "episodes", one.key]))}>
                    <title>{`${one.key}: ${selectionWords(one.kept, one.reason)}${along ? `, ${along} ${number(one.weighed?.[along] ?? null)}` : ""}`}</title>
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
              <text key={part} x={LEFT + 12 + (wide - LEFT - 40) * part} y={height - 20} text-anchor="middle">
                {number(part * most)}
              </text>
            ))}
            <text x={wide - 16} y={height - 5} text-anchor="end">
              {label(along)} →
            </text>
          </g>
        )}
      </svg>
    </div>
  );
}

function describe(lanes: [string, GroupEpisode[]][], along: string | null): string {
  const parts = lanes.map(
    ([name, members]) => `${name}: ${members.length}, of which ${members.filter((one) => one.kept).length} kept`,
  );
  return `${parts.join(". ")}.${along ? ` Episodes are positioned by ${along}; see the table below for the values.` : ""}`;
}
