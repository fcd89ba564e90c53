/** One figure: name, value and note. */
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
