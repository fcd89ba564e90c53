/* The picture of a group: one mark per episode. Correct is round, wrong is square; kept is filled. */
const WORDS: Record<string, string> = {
  C: "correct, kept",
  c: "correct, dropped",
  W: "wrong, kept",
  w: "wrong, dropped",
  x: "not counted",
};

const SIZE = 12;
const MOST = 64;

export function Marks({ marks }: { marks: string }) {
  const shown = marks.slice(0, MOST);
  return (
    <svg class="marks" width={shown.length * SIZE} height={SIZE} role="img" aria-label={describe(marks)}>
      {[...shown].map((letter, at) => (
        <Sign key={at} letter={letter} x={at * SIZE + SIZE / 2} y={SIZE / 2} />
      ))}
    </svg>
  );
}

/** One mark in a drawing. */
export function Sign({ letter, x, y, size = 4 }: { letter: string; x: number; y: number; size?: number }) {
  if (letter === "x") return <circle class="mark none" cx={x} cy={y} r={1.5} />;
  const kind = `mark ${letter.toLowerCase() === "c" ? "right" : "wrong"} ${letter === letter.toUpperCase() ? "kept" : "dropped"}`;
  if (letter.toLowerCase() === "c") return <circle class={kind} cx={x} cy={y} r={size} />;
  return <rect class={kind} x={x - size} y={y - size} width={2 * size} height={2 * size} rx={1} />;
}

/** Letter of an episode. */
export function letterOf(row: { correct: boolean | null; kept: boolean | null; end: string }): string {
  if (["unavailable", "cancelled", "no_text", "cut", "refused"].includes(row.end)) return "x";
  const letter = row.correct ? "c" : "w";
  return row.kept ? letter.toUpperCase() : letter;
}

/** Description of marks: `3 correct, kept; 5 wrong, dropped`. */
export function describe(marks: string): string {
  return Object.entries(WORDS)
    .map(([letter, words]): [number, string] => [[...marks].filter((one) => one === letter).length, words])
    .filter(([number]) => number > 0)
    .map(([number, words]) => `${number} ${words}`)
    .join("; ");
}

export function MarksLegend() {
  return (
    <p class="marks-legend">
      {Object.entries(WORDS).map(([letter, words]) => (
        <span key={letter}>
          <svg width={SIZE} height={SIZE} aria-hidden="true">
            <Sign letter={letter} x={SIZE / 2} y={SIZE / 2} />
          </svg>{" "}
          {words}
        </span>
      ))}
    </p>
  );
}
