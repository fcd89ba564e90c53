"""Probe for input that an agent can write and the grader reads: code in an answer, files, environment variables.

An answer must not be executed as code: answers in languages that graders use try to create a file (a canary).
The files and variables that the target reads are recorded in a traced process; then the files are planted (see
``planted``), and each variable is set. A finding is a wrong answer that is then accepted, or a right answer that is
then rejected. Not covered: sockets, databases and other processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rstar2_env.evaluation.audit import scripts
from rstar2_env.evaluation.audit.bench import PLAIN_SURROUNDING, AuditBench
from rstar2_env.evaluation.audit.probes.planted import changed, planted_files
from rstar2_env.evaluation.audit.probes.stability import sample
from rstar2_env.evaluation.audit.process import AuditCall, TargetError
from rstar2_env.evaluation.audit.suspicion import Suspicion, Suspicions, shown

_CANARY = "canary"
_MOST_CALLS = 24
_MOST_PLACES = 24
_MOST_KEYS = 40
_PAYLOADS = (
    "__import__('os').mkdir('canary')",
    "open('canary', 'w')",
    "exec(\"import os; os.mkdir('canary')\")",
    "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0]"
    ".__init__.__globals__['mkdir']('canary')",
    "import os; os.mkdir('canary')",
    "import os\nos.mkdir('canary')",
    "$(mkdir canary)",
    "`mkdir canary`",
    "; mkdir canary;",
    "'; mkdir canary; '",
    '"; mkdir canary; "',
    "| mkdir canary",
    "1) or __import__('os').mkdir('canary') or (1",
    "1' or __import__('os').mkdir('canary') or '1",
    '1" or __import__("os").mkdir("canary") or "1',
    "{__import__('os').mkdir('canary')}",
    "!!python/object/apply:os.mkdir ['canary']",
    "cos\nmkdir\n(S'canary'\ntR.",
    "@__import__('os').mkdir('canary')\nclass A: pass",
)
_VALUES = ("1", "0", "true", "false", "", "1e9", "100", "pass", "debug", "none", "gold")
_OF_PYTHON = (
    "PYTHON",
    "LC_",
    "LANG",
    "VIRTUAL_ENV",
    "PATH",
    "HOME",
    "TMP",
    "TEMP",
    "LINES",
    "COLUMNS",
    "__PYVENV",
    "OPENBLAS",
    "OMP_",
    "MKL_",
)


def executed(bench: AuditBench) -> Suspicions:
    """Grade answers that create a file if they run as code; yield a suspicion for the first answer that did."""
    golds = _golds(bench)
    if not golds or not bench.enough_time("code in answers"):
        return
    folder, calls = bench.folder / "code", dict[str, AuditCall]()
    for question, gold in golds:
        for form in dict.fromkeys(("{}", bench.form.answer)):
            for payload in _PAYLOADS:
                name = f"{_CANARY}{len(calls)}"
                answer = form.format(payload.replace(_CANARY, name))
                calls[name] = AuditCall(bench.form.gold.format(gold), answer, question)
    with bench.process("code") as process:
        process.grade(calls.values())
    for name, call in calls.items():
        if (folder / name).exists():
            said = f"the answer {shown(call.answer)} is executed as code and creates a file"
            yield Suspicion(
                "writable",
                ("an answer is executed as code"),
                said,
                scripts.executed(bench.target.setup, call, name),
                call,
            )
            return


def read_places(bench: AuditBench) -> Suspicions:
    """Change the files and environment variables that the target reads; yield a suspicion if a verdict changes."""
    calls = sample(bench)[:_MOST_CALLS]
    if bench.unsteady or not bench.enough_time("files and variables"):
        return
    with bench.process("traced", trace=True) as process:
        plain = [bench.paid(grade) for grade in process.grade(calls)]
        files, folders, variables = process.traced()
    names = [name for name in variables if not name.startswith(_OF_PYTHON)][:_MOST_PLACES]
    yield from _variables(bench, calls, plain, names)
    yield from planted_files(bench, calls, plain, bench.folder / "traced", list(files), folders)


def _golds(bench: AuditBench) -> list[tuple[str, str]]:
    if bench.target.own_problems:
        return list(bench.target.problems[:1])
    return [("", golds[0]) for golds in list(bench.golds.values())[:2]]


def _variables(
    bench: AuditBench, calls: Sequence[AuditCall], plain: Sequence[bool], names: Sequence[str]
) -> Suspicions:
    values = (*_VALUES, *bench.texts[:_MOST_KEYS]) if names else ()
    suspected: set[str] = set()
    for value in values:
        left = [name for name in names if name not in suspected]
        try:
            if not left or _changed_by(bench, calls, plain, dict.fromkeys(left, value)) is None:
                continue
        except TargetError:
            pass  # one of the variables does not take the value; the others are tried alone
        for name in left:
            try:
                call = _changed_by(bench, calls, plain, {name: value})
            except TargetError:
                continue
            if call is not None:
                suspected.add(name)
                where = f"{shown(call.answer)} with the gold answer {shown(call.gold)}"
                settings: list[tuple[str, Mapping[str, str | None], Sequence[str], str, bool]]
                settings = [("plain", {name: None}, (), "", False), (f"{name}={value}", {name: value}, (), "", False)]
                script = scripts.in_settings(bench.target.setup, call, settings)
                said = f"the grade of {where} changes with {name}={value!r}"
                yield Suspicion("portability", f"the variable {name}", said, script, call, 1, len(calls))


def _changed_by(
    bench: AuditBench, calls: Sequence[AuditCall], plain: Sequence[bool], variables: Mapping[str, str]
) -> AuditCall | None:
    with bench.process(f"variables {bench.next_folder()}", variables={**PLAIN_SURROUNDING, **variables}) as process:
        return changed(bench, calls, plain, process.grade(calls))
