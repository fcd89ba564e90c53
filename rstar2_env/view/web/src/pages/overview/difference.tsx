/* The options in which two runs differ: the first few, and all on request. */
import { useState } from "preact/hooks";
import { useLoad } from "../../data/hooks";
import type { Difference } from "../../data/types";
import { count, NONE, plain, short } from "../../format";
import { Empty, Shown } from "../../ui/states";

/** If more options differ, the others are shown on request. */
const FEW = 8;

export function DifferenceTable({ a, b, names }: { a: string; b: string; names: [string, string] }) {
  const load = useLoad<Difference>("api/difference", { a, b });
  const [whole, setWhole] = useState(false);
  return (
    <Shown load={load}>
      {({ options }) => {
        const rows = whole ? options : options.slice(0, FEW);
        return options.length ? (
          <div class="scroll-x" tabIndex={0} role="region" aria-label="Options that differ">
            <table class="plain-table">
              <thead>
                <tr>
                  <th scope="col">Option</th>
                  <th scope="col">{names[0]}</th>
                  <th scope="col">{names[1]}</th>
                </tr>
              </thead>
              <tbody>
                {rows.map((option) => (
                  <tr key={option.path}>
                    <th scope="row" class="mono">
                      {option.path}
                    </th>
                    <td class="mono">{short(plain(option.a), 400)}</td>
                    <td class="mono">{short(plain(option.b), 400)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
            {rows.some(({ a, b }) => plain(a) === NONE || plain(b) === NONE) && <p class="quiet">{NONE}: this run records no value of the option.</p>}
            {!whole && options.length > FEW && (
              <button type="button" class="button small" onClick={() => setWhole(true)}>
                Show all {count(options.length)} options
              </button>
            )}
          </div>
        ) : (
          <Empty title="All options are identical" />
        );
      }}
    </Shown>
  );
}
