/* Table of the episodes of a run. */
import { useMemo, useRef } from "preact/hooks";
import { path } from "../../data/address";
import type { EpisodeRow, RunDetail } from "../../data/types";
import { many } from "../../format";
import { href, setQuery } from "../../shell/router";
import { Table } from "../../ui/table";
import { useWindowed } from "../../ui/windowed";
import type { PageProps } from "../types";
import { RunFrame } from "../run-frame";
import { AggregatesLine } from "./aggregates";
import { columnsOf } from "./columns";
import { DownloadCsv } from "./csv";
import { Filters, filtersOf } from "./filters";

export function EpisodesPage({ values, query }: PageProps) {
  return (
    <RunFrame run={values["run"] ?? ""} tab="episodes">
      {(detail) => <Episodes detail={detail} query={query} />}
    </RunFrame>
  );
}

function Episodes({ detail, query }: { detail: RunDetail; query: Record<string, string> }) {
  const filters = filtersOf(query);
  const sort = query["sort"] ?? "";
  const rows = useWindowed<EpisodeRow>(path("runs", detail.run, "episodes"), { ...filters, sort }, detail.run);
  const columns = useMemo(() => columnsOf(new Set(detail.columns.map((column) => column.name))), [detail.columns]);
  const filtered = Object.keys(filters).length > 0;
  const filter = JSON.stringify(filters);
  const known = useRef({ filter: "", total: 0 });
  if (rows.total !== null) known.current = { filter, total: rows.total };
  // Figures are requested after the first rows of a run that is indexed completely, and again if the filters change.
  const found = known.current.filter === filter ? known.current.total : 0;
  return (
    <>
      <Filters detail={detail} query={query} />
      <p class="table-count" role="status">
        {rows.total === null ? "Counting…" : many(rows.total, "episode")}
        {filtered && rows.total !== null && " found"}
        {rows.partial && ", still indexing"}
      </p>
      {found ? (
        <div class="table-facts">
          {!rows.partial && <AggregatesLine detail={detail} filters={filters} />}
          <DownloadCsv detail={detail} query={{ ...filters, sort }} />
        </div>
      ) : null}
      <Table
        label="Episodes"
        name="episodes"
        rows={rows}
        columns={columns}
        rowKey={(row) => row.key}
        to={(row, index) => href(["runs", detail.run, "episodes", row.key], { ...filters, sort, at: index })}
        sort={sort}
        onSort={(next) => setQuery({ sort: next })}
        rowClass={(row) => (row.kept === false ? "dropped" : "")}
        empty={filtered ? "No episodes match these filters: change or remove one." : "Episodes appear here as they are written."}
      />
    </>
  );
}
