/* Card of the selector: name, options and description. */
import { plain } from "../../format";
import { Chip } from "../../ui/chip";
import { PAGES, REASONS, SELECTORS } from "../../words";

/** Parse a part of a recipe with its options from the options of a run. */
export function partOf(value: unknown): { name: string; options: Record<string, unknown> } | null {
  if (typeof value === "string") return { name: value, options: {} };
  if (Array.isArray(value)) return { name: String(value[0] ?? ""), options: { ...(value[1] as object | undefined) } };
  if (typeof value !== "object" || value === null) return null;
  const { name, options, summary: _, ...rest } = value as Record<string, unknown>;
  return { name: String(name ?? ""), options: { ...(options as object | undefined), ...rest } };
}

export function PartCard({
  kind,
  part,
  words,
  page,
  reasons,
}: {
  kind: string;
  part: { name: string; options: Record<string, unknown> };
  words: string | undefined;
  page?: string | undefined;
  reasons?: string[];
}) {
  return (
    <section class="card part-card" aria-label={kind}>
      <p class="chips">
        <strong>
          {kind} {part.name}
        </strong>
        {Object.entries(part.options).map(([name, value]) => (
          <Chip key={name}>
            {name} = {plain(value)}
          </Chip>
        ))}
      </p>
      {words && <p class="quiet">{words}</p>}
      {reasons && reasons.length > 0 && (
        <details>
          <summary>Explanation of the reasons</summary>
          <dl class="parts">
            {reasons.map((reason) => (
              <div key={reason}>
                <dt>{reason}</dt>
                <dd>{REASONS[reason] ?? "A reason defined by the selector."}</dd>
              </div>
            ))}
          </dl>
          <p class="quiet">
            See <span class="mono">{page ?? "docs/trainers.md"}</span> and{" "}
            <span class="mono">rstar2 list parts selector</span>.
          </p>
        </details>
      )}
    </section>
  );
}

export function SelectorCard({ part, reasons }: { part: unknown; reasons: string[] }) {
  const read = partOf(part);
  if (!read?.name) return null;
  return <PartCard kind="Selector" part={read} words={SELECTORS[read.name]} page={PAGES[read.name]} reasons={reasons} />;
}
