/* Configuration of a run: the parts of the recipe by slot, then all options. */
import { useState } from "preact/hooks";
import { plain } from "../../format";
import { Code } from "../../ui/code";
import { TextField } from "../../ui/fields";
import { Empty } from "../../ui/states";
import type { PageProps } from "../types";
import { RunFrame } from "../run-frame";

export function RecipePage({ values }: PageProps) {
  return (
    <RunFrame run={values["run"] ?? ""} tab="recipe">
      {(detail) => (
        <>
          {detail.recipe_parts && <Parts parts={detail.recipe_parts} />}
          <Options config={detail.config} />
        </>
      )}
    </RunFrame>
  );
}

function Parts({ parts }: { parts: Record<string, unknown> }) {
  return (
    <section aria-labelledby="parts">
      <h2 class="section-title" id="parts">
        Parts
      </h2>
      <dl class="parts card">
        {Object.entries(parts).map(([slot, part]) => (
          <div key={slot}>
            <dt>{slot}</dt>
            <dd>
              {(Array.isArray(part) ? part : [part]).map((one, at) => (
                <Part key={at} part={one} />
              ))}
              {Array.isArray(part) && part.length === 0 && <span class="quiet">none</span>}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** Name of a part, followed by its options. */
function Part({ part }: { part: unknown }) {
  if (typeof part !== "object" || part === null) return <p class="mono">{plain(part)}</p>;
  const { name, ...options } = part as Record<string, unknown>;
  return (
    <p class="mono part">
      <strong>{plain(name)}</strong>
      {flat(options).map(([option, value]) => (
        <span key={option}>
          <span class="quiet">{option} =</span> {value}
        </span>
      ))}
    </p>
  );
}

function Options({ config }: { config: Record<string, unknown> }) {
  const [words, setWords] = useState("");
  const rows = flat(config);
  const found = rows.filter(([name, value]) => `${name} ${value}`.toLowerCase().includes(words.toLowerCase()));
  return (
    <section aria-labelledby="options">
      <h2 class="section-title" id="options">
        All options
      </h2>
      <div class="toolbar">
        <TextField label="Search options" type="search" value={words} onChange={setWords} wide />
      </div>
      {found.length ? (
        <div class="card scroll-x" tabIndex={0} role="region" aria-label="Table of options">
          <table class="plain-table">
            <thead>
              <tr>
                <th scope="col">Option</th>
                <th scope="col">Value</th>
              </tr>
            </thead>
            <tbody>
              {found.map(([name, value]) => (
                <tr key={name}>
                  <th scope="row" class="mono">
                    {name}
                  </th>
                  <td class="mono">{value}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <Empty title="No matching options">Change or clear the search.</Empty>
      )}
      <details class="further">
        <summary>As JSON</summary>
        <Code text={JSON.stringify(config, null, 2)} language="json" label="The configuration" />
      </details>
    </section>
  );
}

/** Options by dotted names; lists of plain values stay in one row. */
export function flat(value: unknown, name = ""): [string, string][] {
  if (typeof value !== "object" || value === null) return [[name, plain(value)]];
  const entries = Array.isArray(value) ? null : Object.entries(value);
  if (!entries) return [[name, JSON.stringify(value)]];
  if (!entries.length) return name ? [[name, "{}"]] : [];
  return entries.flatMap(([key, inner]) => flat(inner, name ? `${name}.${key}` : key));
}
