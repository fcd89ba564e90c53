"""A plan lists the active layers, and is converted to plain data and back."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from rstar2_env.sandbox.inside.kernel import linux
from rstar2_env.sandbox.inside.kernel.plan import SCOPED, IsolationPlan


def test_only_namespaces_in_force_give_flags() -> None:
    plan = IsolationPlan(namespaces=("pid", "net"))
    assert plan.flags("pid", "net") == linux.CLONE_NEWPID | linux.CLONE_NEWNET
    assert plan.flags("pid", "mount") == linux.CLONE_NEWPID
    assert plan.flags("mount", "ipc") == 0


@pytest.mark.parametrize(
    ("fields", "own"), [({"user": True}, True), ({"users_from": 70000}, True), ({}, False), ({"seccomp": True}, False)]
)
def test_a_program_has_a_user_of_its_own_in_a_user_namespace_or_by_its_number(
    fields: dict[str, bool | int], own: bool
) -> None:
    assert IsolationPlan(**fields).own_user is own  # type: ignore[arg-type]  # the fields are of several types


def test_landlock_keeps_signals_in_from_one_version_on() -> None:
    assert [IsolationPlan(landlock=version).scoped for version in (0, SCOPED - 1, SCOPED, SCOPED + 1)] == [
        False,
        False,
        True,
        True,
    ]


def test_it_comes_back_from_json_as_it_was() -> None:
    plan = IsolationPlan(user=True, namespaces=("pid", "mount"), seccomp=True, landlock=4, shared_processes=12)
    read = json.loads(json.dumps(asdict(plan)))
    assert IsolationPlan(**{**read, "namespaces": tuple(read["namespaces"])}) == plan
