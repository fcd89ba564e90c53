/* Download of the filtered table as CSV. */
import { useState } from "preact/hooks";
import { path } from "../../data/address";
import { useDataContext } from "../../data/hooks";
import type { EpisodeRow, Page, RunDetail } from "../../data/types";
import { count } from "../../format";

const ROWS = 1000;

const COLUMNS: (keyof EpisodeRow)[] = [
  ...(["key", "split", "step", "group", "member", "round", "correct", "reward", "advantage", "kept", "reason", "end", "turns"] as const),
  ...(["policy_tokens", "calls", "errors", "statuses", "last_status", "after_error", "injected", "seconds", "version"] as const),
  ...(["problem_id", "task", "problem_source", "difficulty", "question", "source", "answer"] as const),
];

export function DownloadCsv({ detail, query }: { detail: RunDetail; query: Record<string, string> }) {
  const { source } = useDataContext();
  const [said, setSaid] = useState("");
  const load = async () => {
    const rows: EpisodeRow[] = [];
    for (let total = Infinity; rows.length < total; ) {
      setSaid(total === Infinity ? "Reading…" : `${count(rows.length)} of ${count(total)}`);
      const page = await source.get<Page<EpisodeRow>>(path("runs", detail.run, "episodes"), { ...query, offset: rows.length, limit: ROWS });
      if (!page.rows.length) break;
      rows.push(...page.rows);
      total = page.total;
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv(rows)], { type: "text/csv" }));
    link.download = `${detail.run}-episodes.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    setSaid("");
  };
  return (
    <button type="button" class="button small ghost" disabled={said !== ""} onClick={() => void load().catch((error: unknown) => setSaid(String(error)))}>
      <span aria-live="polite">{said || "Download CSV"}</span>
    </button>
  );
}

/** Rows as CSV, with a line of names. */
export function csv(rows: EpisodeRow[]): string {
  const lines = rows.map((row) => COLUMNS.map((name) => cell(row[name])).join(","));
  return `${[COLUMNS.join(","), ...lines].join("\r\n")}\r\n`;
}

/** A cell; text that a spreadsheet would run as a formula is marked as text. */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const plain = typeof value === "string" ? value : Object.entries(value).map(([name, times]) => `${name} ${String(times)}`).join("; ");
  const text = /^[=+\-@\t\r]/.test(plain) ? `'${plain}` : plain;
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}
