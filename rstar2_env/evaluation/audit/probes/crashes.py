"""Probe for answers that make the grader raise an exception, or whose grade is not a number.

Covered: unusual texts, and every other answer of the audit. Gold answers that the grader cannot parse at all are left
out.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from rstar2_env.evaluation.audit import scripts
from rstar2_env.evaluation.audit.bench import AuditBench
from rstar2_env.evaluation.audit.process import AuditCall
from rstar2_env.evaluation.audit.shrink import shrunk_text
from rstar2_env.evaluation.audit.suspicion import Suspicion, Suspicions, shown

_MOST_GOLDS = 4
_MOST_TRIALS = 60

ODD = (
    "",
    " ",
    "\t",
    "\n\n",
    "\x00",
    "\x1b[31m7\x1b[0m",
    "\u2028",
    "\ufeff7",
    "\u202e7",
    "\N{ZERO WIDTH SPACE}",
    "é",
    "e\u0301",
    "😀",
    "中文",
    "٣",
    "²",
    "½",
    "Ⅷ",
    "①",
    "７",
    "−7",
    "--5",
    "+-5",
    "5-",
    "1e",
    "1e5",
    "1e400",
    "-1e400",
    "1e-400",
    "nan",
    "inf",
    "-0",
    "0x1F",
    "1_000",
    "1,000",
    "1.2.3",
    ".",
    ",",
    "-",
    "/",
    "1/0",
    "0/0",
    "1/",
    "/2",
    "1//2",
    "5%",
    "%s",
    "%d%n",
    "{}",
    "{0}",
    "{answer}",
    "$",
    "$5$",
    "\\",
    "\\frac{1}{0}",
    "\\frac{1}",
    "\\boxed{",
    "\\boxed{{}",
    "}",
    "{",
    "(",
    ")",
    "[",
    "]",
    "((",
    "*",
    "+",
    "?",
    "a**",
    "[a-",
    "(?P<",
    "|",
    "^",
    "'",
    '"',
    "'''",
    "`",
    "<",
    ">",
    "<a>",
    "</answer>",
    "<answer>",
    "&amp;",
    "#",
    "####",
    "None",
    "null",
    "true",
    "{}",
    "[]",
    '{"a": 1}',
    '{"answer": null}',
    "[1, 2",
    "()",
    "(1,)",
    "(1, 2",
    "1, , 2",
    ",,",
    "x =",
    "= 5",
    "x = = 5",
    "lambda",
    "import os",
    "raise ValueError",
    "exit()",
    "os._exit(3)",
    "__import__('os')._exit(3)",
    "...",
    "A",
    "yes",
    "no",
    "Paris",
    "-",
    "\N{EN DASH}5",
    "5 5",
    "5\n5",
    "1;2",
    "1:2",
    "12:30",
    "2024-13-45",
    "0000-00-00",
    "9" * 400,
    "9" * 5000,
    "-" + "9" * 5000,
    "a" * 5000,
    "0." + "0" * 5000 + "1",
    "(" * 3000,
    "[" * 3000,
    "{" * 3000,
    "-" * 3000,
    "(" * 200 + "1" + ")" * 200,
    "1+" * 2000 + "1",
    "\\" * 3000,
)
"""Unusual texts: empty, very long, with control characters, and others."""


def crashes(bench: AuditBench) -> Suspicions:
    """Grade unusual texts; yield a suspicion for each kind of exception that occurred in the audit."""
    if bench.target.own_problems:
        golds = [(question, gold) for question, gold in bench.target.problems[:_MOST_GOLDS]]
    else:
        golds = [("", gold) for gold in bench.sample(_MOST_GOLDS)]
    forms = dict.fromkeys(("{}", bench.form.answer))
    for text in ODD:
        if not bench.enough_time("odd texts"):
            break
        bench.grade(
            [
                AuditCall(bench.form.gold.format(gold), form.format(text), question)
                for question, gold in golds
                for form in forms
            ]
        )
    readable = {bench.form.gold.format(gold) for each in bench.golds.values() for gold in each}
    readable = {gold for gold in readable if not _unreadable(bench, gold)}
    found: dict[str, list[AuditCall]] = defaultdict(list)
    tried = 0
    for call, grade in bench.known.items():
        if call.gold in readable or bench.target.own_problems:
            tried += 1
            if grade.error and not grade.hung:
                found[grade.error.partition(":")[0]].append(call)
    for error, calls in found.items():
        call = min(calls, key=lambda call: (len(call.answer), len(call.gold)))
        short = shrunk_text(call.answer, partial(_raises, bench, call, error), most=_MOST_TRIALS)
        call = call._replace(answer=short)
        said = (
            f"the answer {shown(short)} with the gold answer {shown(call.gold)} raises "
            f"{bench.grade([call])[0].error[:120]}"
        )
        script = scripts.failing(bench.target.setup, call, error)
        yield Suspicion("crash", error, said, script, call, len(calls), tried)


def _unreadable(bench: AuditBench, gold: str) -> bool:
    """Whether most calls so far with this gold answer raised an exception, whatever the answer."""
    grades = [grade for call, grade in bench.known.items() if call.gold == gold]
    return sum(bool(grade.error) for grade in grades) > len(grades) / 2


def _raises(bench: AuditBench, call: AuditCall, error: str, text: str) -> bool:
    return bench.grade([call._replace(answer=text)])[0].error.partition(":")[0] == error
