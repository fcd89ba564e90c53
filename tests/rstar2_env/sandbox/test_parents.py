"""Parents by their modules: the modules that a program finds imported; a wrong guess costs an import, not an error."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, LocalSandbox

LOADED = "import sys\nprint(*(name for name in ('num' 'py', 'sym' 'py') if name in sys.modules))\n"
"""Prints which are imported, without naming them."""
DRAW = "module = __import__('num' 'py')\nprint(module.random.rand(), module.random.randint(1 << 30))\n"


def parents_of(sandbox: LocalSandbox, look: Any) -> list[int]:
    """The parents of a sandbox: the children of the zygote."""
    light = look.pids(sandbox)[1]
    zygote = int(Path(f"/proc/{light}/stat").read_text().rpartition(")")[2].split()[1])
    return [int(pid) for pid in Path(f"/proc/{zygote}/task/{zygote}/children").read_text().split()]


def test_a_program_finds_imported_what_it_names_and_no_more(local: LocalSandbox) -> None:
    found = [local.run(Job(f"{LOADED}\n{words}")).stdout for words in ("", "'numpy'", "'sympy'", "'sympy', 'numpy'")]
    assert found == ["\n", "numpy\n", "sympy\n", "numpy sympy\n"]


def test_a_file_of_the_job_may_name_it(local: LocalSandbox) -> None:
    job = Job(f"import helper\n{LOADED}", files={"helper.py": b"import numpy as np\n", "data.txt": b"sympy"})
    assert local.run(job).stdout == "numpy\n"


def test_a_wrong_guess_costs_an_import_and_draws_the_same_numbers(local: LocalSandbox) -> None:
    guessed, named = local.run(Job(DRAW, seed=7)), local.run(Job(f"'numpy'\n{DRAW}", seed=7))
    assert guessed.status is ToolStatus.OK, guessed
    assert guessed.stdout == named.stdout
    symbols = local.run(Job("print(__import__('sym' 'py').solve('x**2 - 4'))"))
    assert symbols.stdout == "[-2, 2]\n", symbols


def test_what_an_import_needs_does_not_count_against_a_program_whose_parent_was_guessed_wrong(
    local: LocalSandbox,
) -> None:
    little = Limits(memory_mb=24, wall_s=30)
    found = [local.run(Job(f"{words}\n{DRAW}", limits=little)).status for words in ("", "'numpy'")]
    assert found == [ToolStatus.OK, ToolStatus.OK]


def test_a_session_has_everything_since_later_cells_may_import_it(local: LocalSandbox) -> None:
    assert local.run(Job(LOADED, session="everything")).stdout == "numpy sympy\n"
    local.end_session("everything")


def test_all_parents_together_take_little_memory(local: LocalSandbox, look: Any) -> None:
    for words in ("", "'numpy'", "'sympy'", "'sympy', 'numpy'"):
        local.run(Job(words))
    pids = parents_of(local, look)
    assert len(pids) == 4
    shares = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            shares += int(line.split()[1]) if line.startswith("Pss:") else 0
    assert shares < 250 << 10  # KiB


@pytest.mark.parametrize(
    ("parents", "plain", "naming_one"), [(1, "numpy sympy", "numpy sympy"), (2, "", "numpy sympy")]
)
def test_there_are_never_more_parents_than_allowed(parents: int, plain: str, naming_one: str, look: Any) -> None:
    with LocalSandbox(workers=1, waiting=1, parents=parents) as sandbox:
        assert sandbox.run(Job(LOADED)).stdout == f"{plain}\n"
        for name in ("numpy", "sympy"):
            assert sandbox.run(Job(f"'{name}'\n{LOADED}")).stdout == f"{naming_one}\n"
        assert len(parents_of(sandbox, look)) == parents


def test_a_program_whose_parent_cannot_be_made_imports_for_itself(look: Any) -> None:
    # A module that is there, and raises where it is imported on this system.
    with LocalSandbox(workers=1, waiting=1, preload=("asyncio.windows_events",)) as sandbox:
        for _ in range(2):
            assert sandbox.run(Job("import asyncio\nprint(1)")).stdout == "1\n"
        assert sandbox.run(Job("print(1)", session="a")).stdout == "1\n"
        assert len(parents_of(sandbox, look)) == 1


def test_a_parent_that_is_being_made_holds_up_no_other_program() -> None:
    with LocalSandbox(workers=1, waiting=1, preload=("json",), warmup="import time\ntime.sleep(3)") as sandbox:
        slow = sandbox.submit(Job("import json\nprint(2)"))
        for _ in range(5):
            assert sandbox.run(Job("print(1)")).stdout == "1\n"
        assert not slow.future.done()
        assert slow.future.result().stdout == "2\n"


def test_a_parent_that_is_killed_takes_no_call_with_it(look: Any) -> None:
    with LocalSandbox(workers=1, waiting=1, preload=("json",), retries=2) as sandbox:
        assert sandbox.run(Job("import json\nprint(1)")).stdout == "1\n"
        [other] = set(parents_of(sandbox, look)) - {look.pids(sandbox)[1]}
        os.kill(other, 9)
        assert sandbox.run(Job("import json\nprint(2)")).stdout == "2\n"
        assert sandbox.run(Job("print(3)")).stdout == "3\n"


def test_nothing_is_forked_beside_a_program_while_another_child_waits(look: Any) -> None:
    with (
        LocalSandbox(workers=2, waiting=2, preload=()) as small,
        ThreadPoolExecutor(2) as pool,
    ):
        resting = look.settled(small).processes
        zygote = look.pids(small)[1]
        seconds = Job("import time\ntime.sleep(0.5)")
        one = pool.submit(small.run, seconds)
        counts = set()
        while not one.done():
            counts.add(len(look.descendants(zygote)))
        assert max(counts) <= resting
        two = [pool.submit(small.run, seconds) for _ in range(2)]
        look.wait_for(lambda: len(look.descendants(zygote)) > resting)  # then none waits any more, and one is forked
        assert [call.result().status for call in two] == [ToolStatus.EMPTY] * 2
