"""The report of an audit as one HTML file; ``report_page`` escapes every text that comes from the target."""

from __future__ import annotations

from rstar2_env.evaluation.audit.report import AuditFinding, AuditReport
from rstar2_env.evaluation.audit.suspicion import KINDS
from rstar2_env.evaluation.report_page import document, escaped


def page(report: AuditReport) -> str:
    """Return the report as the text of one HTML file.

    Args:
        report: Findings and counts of the audit.
    """
    verdict = "nothing found" if report.ok else f"{len(report.findings)} findings"
    chapters = "".join(
        f"<h2>{escaped(KINDS[kind].capitalize())}</h2>{''.join(map(_finding, found))}"
        for kind in KINDS
        if (found := report.of(kind))
    )
    return document(f"{report.target}: {verdict}", f"{_summary(report)}{chapters}{_causes(report)}")


def _summary(report: AuditReport) -> str:
    named = report.rows().items()
    rows = "".join(f"<tr><th>{escaped(name)}</th><td>{escaped(value)}</td></tr>" for name, value in named)
    return f"<table>{rows}</table>\n"


def _finding(one: AuditFinding) -> str:
    return (
        f'<p><span class="failed">{escaped(one.cause)}</span> ({one.found} of {one.tried}): {escaped(one.said)}</p>'
        f"<details><summary>Reproduction</summary><pre>{escaped(one.script)}</pre><p>It prints:</p>"
        f"<pre>{escaped(one.output)}</pre></details>\n"
    )


def _causes(report: AuditReport) -> str:
    rows = "".join(
        f"<tr><td>{escaped(one.cause)}</td><td>{'right' if one.right else 'wrong'}</td>"
        f'<td>{one.tried}</td><td class="{"not" if not one.counts else "failed" if one.wrongly else "passed"}">'
        f"{one.wrongly}{'' if one.counts else ' (not supported)'}</td></tr>"
        for one in report.causes
    )
    head = "<tr><th>cause</th><th>answers</th><th>pairs</th><th>graded wrongly</th></tr>"
    return f"<h2>Pairs by cause</h2><table>{head}{rows}</table>\n"
