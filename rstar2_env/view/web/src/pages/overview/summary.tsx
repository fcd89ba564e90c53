/* Figures of an evaluation with intervals, and tables by source and difficulty. */
import { isNumber, number, percent, visible } from "../../format";
import { FIGURES } from "../../words";

interface Figure {
  value: number | null;
  error: number | null;
  count: number;
}

const SHARES = new Set(["pass_rate", "tool_error_share", "tool_error_share_correct", "broken_formats", "code_share", "code_share_correct", "truncated", "repetition"]);

export function Summary({ summary }: { summary: Record<string, unknown> }) {
  const intervals = (summary["intervals"] ?? {}) as Record<string, unknown>;
  const figures = Object.entries(summary).flatMap(([name, value]): [string, Figure | number][] => {
    if (isNumber(value) && /@|_rate|_share|^reward|tool_calls|broken/.test(name)) return [[name, value]];
    return isFigure(value) ? [[name, value]] : [];
  });
  if (!figures.length) return null;
  return (
    <>
      <Whole figures={figures} intervals={intervals} />
      {Object.entries((summary["by"] ?? {}) as Record<string, unknown>).map(([what, parts]) => (
        <By key={what} what={what} parts={(parts ?? {}) as Record<string, Record<string, unknown>>} />
      ))}
    </>
  );
}

function Whole({ figures, intervals }: { figures: [string, Figure | number][]; intervals: Record<string, unknown> }) {
  return (
    <section aria-labelledby="summary">
      <h2 class="section-title" id="summary">
        Results
      </h2>
      <div class="card scroll-x" tabIndex={0} role="region" aria-label="Table of figures">
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">Metric</th>
              <th scope="col" class="right">
                Value
              </th>
              <th scope="col" class="right">
                Standard error
              </th>
              <th scope="col" class="right">
                95% interval
              </th>
              <th scope="col" class="right" title="Number of episodes or calls behind the value">
                n
              </th>
            </tr>
          </thead>
          <tbody>
            {figures.map(([name, figure]) => {
              const form = SHARES.has(name) || name.includes("@") ? percent : number;
              const value = typeof figure === "number" ? figure : figure.value;
              const ends = intervals[name];
              return (
                <tr key={name}>
                  <th scope="row">{named(name)}</th>
                  <td class="right">{form(value)}</td>
                  <td class="right">{typeof figure === "number" ? "–" : form(figure.error)}</td>
                  <td class="right">
                    {Array.isArray(ends) && isNumber(ends[0]) && isNumber(ends[1]) ? `${form(ends[0])} to ${form(ends[1])}` : "–"}
                  </td>
                  <td class="right">{typeof figure === "number" ? "–" : number(figure.count)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

const BY = ["problems", "episodes", "pass_rate", "reward", "tool_error_share", "tokens", "turns"];

/** Figures by source or by difficulty, if there are several. */
function By({ what, parts }: { what: string; parts: Record<string, Record<string, unknown>> }) {
  const rows = Object.entries(parts).filter(([, part]) => typeof part === "object" && part !== null);
  if (rows.length < 2) return null;
  const shown = BY.filter((name) => rows.some(([, part]) => isNumber(part[name])));
  return (
    <section aria-labelledby={`by-${what}`}>
      <h2 class="section-title" id={`by-${what}`}>
        By {visible(what)}
      </h2>
      <div class="card scroll-x" tabIndex={0} role="region" aria-label={`Table by ${what}`}>
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">{capital(visible(what))}</th>
              {shown.map((name) => (
                <th scope="col" class="right" key={name}>
                  {named(name)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, part]) => (
              <tr key={name}>
                <th scope="row">{name || "(none)"}</th>
                {shown.map((figure) => (
                  <td class="right" key={figure}>
                    {(SHARES.has(figure) ? percent : number)(part[figure] as number | null)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** The name of a metric in the words of the page. */
function named(name: string): string {
  const known: Record<string, string> = { ...FIGURES, pass_rate: FIGURES.success, calls: "Calls per episode" };
  return (Object.hasOwn(known, name) && known[name]) || capital(visible(name).replaceAll("_", " "));
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function isFigure(value: unknown): value is Figure {
  return typeof value === "object" && value !== null && "value" in value && "count" in value;
}
