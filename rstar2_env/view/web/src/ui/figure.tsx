/** One figure of a list: its name, its value, and what it is of. */
export function Figure({ name, value, note }: { name: string; value: string; note?: string }) {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>
        {value} {note && <span class="figure-note">{note}</span>}
      </dd>
    </div>
  );
}
