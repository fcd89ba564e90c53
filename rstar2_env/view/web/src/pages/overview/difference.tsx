/* The options in which two runs differ. */
import { useLoad } from "../../data/hooks";
import type { Difference } from "../../data/types";
import { plain, short } from "../../format";
import { Empty, Shown } from "../../ui/states";

export function DifferenceTable({ a, b, names }: { a: string; b: string; names: [string, string] }) {
  const load = useLoad<Difference>("api/difference", { a, b });
  return (
    <Shown load={load}>
      {({ options }) =>
        options.length ? (
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
                {options.map((option) => (
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
          </div>
        ) : (
          <Empty title="All options are identical" />
        )
      }
    </Shown>
  );
}
