"""``rstar2 audit`` of environments of OpenEnv: classes in the process of the audit, and servers."""

from __future__ import annotations

import pytest
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State
from served_app import served

from rstar2_env.evaluation.audit import audit

ENVIRONMENT = """
from pathlib import Path

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
RULES = {
    "sound": "said == str(2 * self._number)",
    "reads_a_file": "said == str(2 * self._number) or 'pass' in (Path('verdict.txt').read_text() "
    "if Path('verdict.txt').exists() else '')",
    "pays_any_digit": "any(char.isdecimal() for char in said)",
}


def audited(rule, folder):
    (folder / f"doubled_{rule}.py").write_text(ENVIRONMENT.format(rule=RULES[rule]))
    return audit(f"openenv:{folder}/doubled_{rule}.py:Doubled", timeout_s=20)


def test_a_class_that_compares_the_answer_is_not_accused(tmp_path):
    report = audited("sound", tmp_path)
    assert report.kind == "an environment of OpenEnv"
    assert report.versions["openenv"].startswith("0.10")
    assert report.findings == []


def test_a_class_that_believes_a_file_which_an_agent_can_write_is_found(tmp_path):
    report = audited("reads_a_file", tmp_path)
    assert [finding.kind for finding in report.findings] == ["writable"], report.findings
    assert "verdict.txt" in report.findings[0].script


def test_a_class_that_pays_any_number_is_found(tmp_path):
    assert audited("pays_any_digit", tmp_path).of("exploit")


class Say(Action):
    words: str


class Served(Environment):
    """Asks for the double of the seed; ``pays`` is the rule of its reward."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed=None, episode_id=None, **_):
        self._number = seed or 0
        return Observation()

    def step(self, action, timeout_s=None, **_):
        return Observation(reward=float(self.pays(action.words.strip(), str(2 * self._number))), done=True)

    @property
    def state(self):
        return State()


class Sound(Served):
    def pays(self, said, gold):
        return said == gold


class Faulty(Served):
    def pays(self, said, gold):
        return gold in said


@pytest.mark.parametrize(("environment", "accused"), [(Sound, False), (Faulty, True)])
def test_a_server_is_audited_over_its_connection(environment, accused):
    with served(create_fastapi_app(environment, Say, Observation, max_concurrent_envs=20)) as url:
        report = audit(f"openenv:{url}", timeout_s=20)
    assert report.kind == "a server of OpenEnv"
    assert bool(report.of("exploit")) is accused, report.findings
