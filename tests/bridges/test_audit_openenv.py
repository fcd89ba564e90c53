"""``rstar2 audit`` of environments of OpenEnv: classes in the process of the audit, and servers.

OpenEnv takes seconds to import, in every process of an audit. So the tests grade a few answers with each target;
``test_audit_verifiers`` has whole audits.
"""

from __future__ import annotations

import pytest
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State
from served_app import served

from rstar2_env.evaluation.audit.process import AuditCall, GraderProcess
from rstar2_env.evaluation.audit.targets.resolve import resolve_target

ENVIRONMENT = """
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State


class Say(Action):
    words: str


class Doubled(Environment):
    def reset(self, seed=None, episode_id=None, **_):
        self._number = seed or 0
        return Observation()

    def step(self, action, timeout_s=None, **_):
        said = action.words.strip()
        return Observation(reward=float({rule}), done=True)

    @property
    def state(self):
        return State()
"""
CALLS = [AuditCall("", answer, "5") for answer in ("10", "11", "x")]


def target_of(rule, folder):
    """The name of a target: a class of OpenEnv whose reward follows a rule."""
    (folder / "doubled.py").write_text(ENVIRONMENT.format(rule=rule))
    return f"openenv:{folder}/doubled.py:Doubled"


def scores(target, folder):
    with GraderProcess(target.setup, folder, grade_timeout_s=60.0) as process:
        return [grade.score for grade in process.grade(CALLS)]


def test_a_class_is_played_by_its_one_field_of_text(tmp_path):
    target = resolve_target(target_of("said == str(2 * self._number)", tmp_path))
    assert target.kind == "an environment of OpenEnv"
    assert target.versions["openenv"].startswith("0.10")
    assert [question for question, _ in target.problems[:3]] == ["0", "1", "2"]
    assert scores(target, tmp_path) == [1.0, 0.0, 0.0]


class Say(Action):
    words: str


class Ten(Environment):
    """Pays the answer 10; the audit's question is no seed of the server, which gets the number of a problem."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed=None, episode_id=None, **_):
        return Observation()

    def step(self, action, timeout_s=None, **_):
        return Observation(reward=float(action.words.strip() == "10"), done=True)

    @property
    def state(self):
        return State()


@pytest.fixture(scope="module")
def server():
    with served(create_fastapi_app(Ten, Say, Observation, max_concurrent_envs=20)) as url:
        yield url


def test_a_server_is_played_over_its_connection(server, tmp_path):
    target = resolve_target(f"openenv:{server}")
    assert target.kind == "a server of OpenEnv"
    assert scores(target, tmp_path) == [1.0, 0.0, 0.0]
