"""Requirements on every provider: the public conformance suite, hostile programs, and a corpus of attacks.

After each program, the status is one of those expected, and the next call works. Every provider runs the suite. Two
local set-ups run every program in CI; the other providers, whose calls end in the same warden, run six of them in CI
and all of them in ``make proof``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from places import SHARED

from rstar2_env.sandbox import Job, Sandbox
from rstar2_env.testing import HOSTILE_LIMITS, SANDBOX_CHECKS, HostileProgram, hostile_programs
from rstar2_env.testing.hostile_code import HARNESS, PROCESSES, survive
from rstar2_env.testing.sandbox_checks import SandboxHarness

ATTACKS = SHARED / "attacks"

WITHOUT_MOUNT: dict[str, dict[str, Any]] = {
    "fifo_everywhere": {"contains": ""},  # the filter refuses to change a mode, which ends it before its last line
    "group_kill_and_init": {"contains": ""},  # pidfd_open is refused, which ends it before its last line
    "own_proc_files_written": {"absent": ("WROTE",)},  # Landlock does not hide that files exist
    # Landlock refuses /proc/self/cmdline, which ends it as well; paths of the machine are not hidden.
    "secrets_in_the_interpreter": {"contains": "", "absent": ("s3cr3t",)},
}
"""What differs in the results of programs without a private file system."""


def here(request: pytest.FixtureRequest, case: HostileProgram) -> HostileProgram:
    """Return the program with the results that are acceptable in the set-up of the running test."""
    if re.search("without-mount|without-namespaces|older-kernel", request.node.name):
        return replace(case, **WITHOUT_MOUNT.get(case.name, {}))
    return case


def corpus() -> list[HostileProgram]:
    programs = []
    for path in sorted(ATTACKS.glob("*.py")):
        code = path.read_text(encoding="utf-8")
        said = json.loads(code.partition("\n")[0].removeprefix("#"))
        absent = said.get("stdout_absent", ())
        absent = (absent,) if isinstance(absent, str) else tuple(absent)
        # The first sets setattr itself to None before it comes to its last line: no Python prints the word. The second
        # is ended for its pipes before that, if programs share a user.
        silent = path.stem in ("patched_builtins", "pipes_of_the_user")
        contains = "" if silent else said.get("stdout_contains", "")
        # What it says of the wall time is for an idle machine; that it ends as "ok" shows that nothing was waited for.
        programs.append(HostileProgram(path.stem, tuple(said["expect"]), code, contains, absent))
    return programs


@pytest.mark.parametrize("check", [name for name in SANDBOX_CHECKS if name not in ("survival", "isolation")])
def test_keeps_the_contract(provider: SandboxHarness, check: str) -> None:
    # Hostile programs come one by one below, and escapes in test_isolation.py.
    SANDBOX_CHECKS[check](provider)


@pytest.mark.parametrize("case", [*corpus(), *hostile_programs()], ids=lambda case: case.name.replace(" ", "_"))
def test_survives(request: pytest.FixtureRequest, any_sandbox: Sandbox, case: HostileProgram) -> None:
    survive(any_sandbox, here(request, case))


@pytest.mark.proof
def test_survives_every_program(
    request: pytest.FixtureRequest, any_sandbox: Sandbox, record_property: Callable[[str, object], None]
) -> None:
    programs, failed = [*corpus(), *hostile_programs()], {}
    for case in programs:
        try:
            survive(any_sandbox, here(request, case))
        except Exception as error:
            failed[case.name] = f"{type(error).__name__}: {error}"[:300]
    record_property("programs", len(programs))
    record_property("that did not end as expected", ", ".join(failed) or "none")
    assert not failed


@pytest.mark.slow
@pytest.mark.deadlines
@pytest.mark.parametrize("case", [*corpus(), *HARNESS, *PROCESSES], ids=lambda case: case.name.replace(" ", "_"))
def test_survives_in_a_session(request: pytest.FixtureRequest, local: Sandbox, case: HostileProgram) -> None:
    request.addfinalizer(lambda: local.end_session("attacked"))
    local.run(Job("x = 1", session="beside"))
    outcome = local.run(Job(case.code, limits=replace(HOSTILE_LIMITS, wall_s=1.0), session="attacked"))
    # One that takes the harness's descriptors away ends its session with it.
    ruined = ("exception",) if outcome.session == "ended" else ()
    assert outcome.status.value in (*case.expect, *ruined, "timeout", "ok", "empty"), outcome
    assert outcome.session in ("new", "interrupted", "ended")
    for text in case.absent:
        assert text not in outcome.stdout
    beside = local.run(Job("x", session="beside"))
    assert (beside.value, beside.session) == ("1", "kept")
    local.run(Job("1", session="attacked"))  # goes as it may, but comes to an end
    local.end_session("attacked")
    assert local.run(Job("print(6 * 7)")).stdout == "42\n"


def test_the_corpus_of_attacks_is_there() -> None:
    if not ATTACKS.is_dir():
        pytest.skip("no ../shared/attacks beside the repository: only the cases of our own were run")
    assert len(corpus()) >= 40
