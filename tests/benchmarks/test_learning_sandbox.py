"""Sums that run in this process go as in the local sandbox, and nothing else runs here."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from rstar2_env.sandbox import make_sandbox
from rstar2_env.sandbox.job import Job, Outcome

SUMS = (
    *("print(3+4)", "print((2+3)*4)", "print(5//2-7%3)", "print(7/2)", "print(-3)", "print(x/1)", "prnt(3+4)"),
    *("print(3/0)", "pint(x/0)", "Print(n)", "print(3+4", "print(n*3", "print(3+*/4)", "print(3)4)", "print(04)"),
)
OTHERS = (
    *("print(2**9)", "print(3, 4)", "3+4", "x = 3", "print(max)", "import os", "print(3)\nprint(4)", "print('a')"),
    *("print(open('/etc/passwd'))", "print((lambda: 3)())", "print(3)(4)", "print(__import__)", "print(3.5)"),
    *("print(x.real)", "print(3 if x else 4)", f"print({'(' * 200}3{')' * 200})", "print(9999999999999)", "print(٣)"),
)


@pytest.fixture(scope="module")
def sums(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("learning_sandbox")


def told(outcome: Outcome) -> tuple[object, ...]:
    last = (outcome.traceback or "").splitlines()[-1:]
    own = (outcome.status, outcome.exit_code, outcome.stdout, outcome.value, outcome.error_type, outcome.error_message)
    return (*own, outcome.reason, last)


def test_a_sum_goes_as_in_the_local_sandbox(sums: ModuleType) -> None:
    with make_sandbox("local") as local:
        assert [told(sums.run_sum(code)) for code in SUMS] == [told(local.run(Job(code))) for code in SUMS]


@pytest.mark.parametrize("code", OTHERS)
def test_what_is_no_sum_does_not_run_here(sums: ModuleType, code: str) -> None:
    assert sums.run_sum(code) is None


def test_what_is_no_sum_runs_in_the_local_sandbox(sums: ModuleType) -> None:
    with make_sandbox(sums.SUMS) as sandbox:
        outcome = sandbox.run(Job("print(2**9)"))
    assert (outcome.stdout, outcome.cpu_s > 0) == ("512\n", True)
