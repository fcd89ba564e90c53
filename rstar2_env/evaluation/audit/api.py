"""``audit``: searches a grader for defects that a policy could exploit, and confirms each finding in a fresh process.

report = audit("grader.py:grade")
for finding in report.findings:
    print(finding.kind, finding.said)
"""

from __future__ import annotations

import platform
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Seconds, checked
from rstar2_env.core.progress import progress as show_progress
from rstar2_env.evaluation.audit.bench import AuditBench
from rstar2_env.evaluation.audit.golds import CLASSES
from rstar2_env.evaluation.audit.probes import crashes, exploits, marked, pairs, stability, times, writable
from rstar2_env.evaluation.audit.process import TargetError
from rstar2_env.evaluation.audit.report import AuditFinding, AuditReport
from rstar2_env.evaluation.audit.scripts import confirm
from rstar2_env.evaluation.audit.suspicion import Suspicions
from rstar2_env.evaluation.audit.targets.resolve import resolve_target
from rstar2_env.evaluation.figures.statistics import Interval, wilson


@checked
def audit(
    target: str,
    *,
    golds: Sequence[str] = (),
    grade_timeout_s: Seconds = 10.0,
    timeout_s: Seconds = 600.0,
    seed: int = 0,
    progress: Callable[[int, int, str], None] | bool = True,
) -> AuditReport:
    """Search a grader for defects, such as wrong answers that it accepts, and return the confirmed findings.

    The target's code runs in separate processes, with the rights of the user.

    Args:
        target: ``module:function`` or ``FILE.py:function`` with the parameters (gold, answer), a TRL reward function,
            ``reasoning-gym:NAME``, ``verifiers:TASKSET``, ``openenv:URL`` or ``openenv:FILE.py:Class``,
            ``nemo-gym:ROWS.jsonl@URL``, ``lm-eval:TASK``, ``inspect:module:scorer``, or an environment (an id),
            ``reward:NAME`` or ``verifier:NAME`` of this package.
        golds: Classes of gold answers that the grader is meant to grade, as keys of ``CLASSES`` (such as ``integers``);
            empty selects every class in which the grader accepts right answers and rejects wrong ones.
        grade_timeout_s: Time limit of one grade, in seconds.
        timeout_s: Seconds after which no further check of the audit begins.
        seed: Seed of the randomly generated gold answers.
        progress: Show the progress on stderr or in a notebook; or a callback that receives, before each step, the
            number of finished steps, the total and the name of the step.

    Raises:
        ConfigurationError: The target or a class of gold answers does not exist, or the target cannot be loaded.
        MissingExtraError: The target's framework is not installed.
    """
    if unknown := [name for name in golds if name not in CLASSES]:
        raise ConfigurationError(
            f"There is no class of gold answers named {' or '.join(map(repr, unknown))}. Known: {', '.join(CLASSES)}.",
            option="golds",
        )
    began = time.monotonic()
    resolved = resolve_target(target)
    with (
        show_progress("probing", show=progress is True) as shown,
        tempfile.TemporaryDirectory(prefix="rstar2-audit-") as folder,
    ):
        bench = AuditBench(resolved, Path(folder), grade_timeout_s, began + timeout_s, seed)
        tally = pairs.PairTally()
        probes = _probes(bench, tally)

        def step(number: int, name: str) -> None:
            report = progress if callable(progress) else shown
            report(number, len(probes) + 1, name)

        try:
            step(0, "the form of answers")
            bench.open(golds)
            findings, unconfirmed = _confirmed(_suspicions(probes, step), bench.until)
        except TargetError as error:
            raise ConfigurationError(f"The grader {target} cannot be audited: {str(error).rstrip('.')}.") from error
        finally:
            bench.close()
    tried, wrongly = tally.counted
    return AuditReport(
        target=target,
        kind=resolved.kind,
        versions={**resolved.versions, "Python": platform.python_version()},
        form=(bench.form.gold, bench.form.answer),
        paid_at=bench.paid_at,
        golds={name: len(each) for name, each in bench.golds.items()} or {"own problems": len(resolved.problems)},
        score=wilson(1 - wrongly / tried, tried) if tried else Interval(*[float("nan")] * 3),
        findings=findings,
        unconfirmed=unconfirmed,
        causes=list(tally.causes.values()),
        grades=len(bench.known),
        seconds=time.monotonic() - began,
        unfinished=bench.unfinished,
    )


def _probes(bench: AuditBench, tally: pairs.PairTally) -> dict[str, Suspicions]:
    return {
        "pairs": pairs.own_pairs(bench, tally) if bench.target.own_problems else pairs.pairs(bench, tally),
        "markers": marked.marked(bench),
        "gold answers that the grader does not support": exploits.unread(bench),
        "exploits": exploits.exploits(bench),
        "odd texts": crashes.crashes(bench),
        "repetition": stability.repeated(bench),
        "order": stability.ordered(bench),
        "surroundings": stability.surroundings(bench),
        "code in answers": writable.executed(bench),
        "files and variables": writable.read_places(bench),
        "times": times.times(bench),
    }


def _suspicions(probes: Mapping[str, Suspicions], step: Callable[[int, str], None]) -> Suspicions:
    for number, (name, probe) in enumerate(probes.items(), 1):
        step(number, name)
        yield from probe


MOST_FINDINGS = 8
"""Maximum number of findings of each kind; once it is reached, further suspicions of this kind are not checked."""


def _confirmed(suspicions: Suspicions, until: float) -> tuple[list[AuditFinding], list[str]]:
    """Run each suspicion's program; return the findings, and a sentence about each suspicion that was not reproduced.

    After the time ``until`` (``time.monotonic``), a suspicion is skipped if its kind already has a finding.
    """
    findings, unconfirmed = list[AuditFinding](), list[str]()
    for one in suspicions:
        most = MOST_FINDINGS if time.monotonic() < until else 1
        if sum(finding.kind == one.kind for finding in findings) >= most:
            continue
        done = confirm(one.script, timeout_s=one.timeout_s)
        if done.shown:
            call = one.call
            findings.append(
                AuditFinding(
                    one.kind, one.cause, one.said, call.gold, call.answer, one.found, one.tried, one.script, done.output
                )
            )
        else:
            unconfirmed.append(f"{one.kind} ({one.cause}): {one.said}")
    return findings, unconfirmed
