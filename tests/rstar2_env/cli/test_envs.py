"""Claims about ``rstar2 list envs``, and about the gallery that is made from the environments."""

from __future__ import annotations

import importlib
import json
import re
import sys

import gymnasium as gym
import pytest
from cli_runner import run
from places import DOCS

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.core.episode import Message
from rstar2_env.core.errors import SandboxUnavailableError, UnknownNameError
from rstar2_env.env.named import EXTRA_OF
from rstar2_env.evaluation.cards import card, environment_ids, gallery, sample_episode, written
from rstar2_env.sandbox import make_sandbox

PAGE = DOCS / "environments.md"
IDS = sorted(name for name, spec in gym.registry.items() if spec.namespace == "rstar2" and name not in EXTRA_OF)


def listed_elsewhere() -> set[str]:
    return {name for name in environment_ids() if not name.startswith("rstar2/")}


@pytest.fixture(scope="module")
def _sandbox():
    try:
        make_sandbox("local").close()
    except SandboxUnavailableError as error:
        pytest.skip(f"no local sandbox on this machine: {error}")


OWN = '''
import gymnasium as gym
from rstar2_env.env.spaces import UnicodeText


class WaitEnv(gym.Env):
    """Waits for the word go."""

    action_space = observation_space = UnicodeText()

    def __init__(self, patience: int = 3, render_mode: str | None = None) -> None:
        self.patience = patience


gym.register("mine/Wait-v0", entry_point=WaitEnv)
'''


class TestEnvs:
    @pytest.mark.usefixtures("_sandbox")
    def test_the_command_itself_makes_every_environment_without_code_that_nobody_named(self):
        shown = run("list", "envs", "--markdown").stdout
        assert [name for name in IDS if f"`{name}`" not in shown] == []

    def test_json_has_every_id_with_its_line_knobs_and_baseline(self):
        listed = json.loads(run("list", "envs", "--json").stdout)
        assert set(IDS) <= set(listed)
        assert listed["rstar2/MathFence-v0"]["knobs"] == {"problems": "arithmetic"}
        assert listed["rstar2/MathFence-v0"]["random_baseline"].startswith("0: ")

    def test_the_list_is_one_line_an_id_within_80_columns(self):
        lines = run("list", "envs").output.partition("\n\n")[0].splitlines()
        assert [line.split()[0] for line in lines if line.split()[0] in IDS] == IDS
        assert all(line.startswith("rstar2/") or line.split()[0] in listed_elsewhere() for line in lines)
        assert max(map(len, lines)) <= 80

    @pytest.mark.usefixtures("_sandbox")
    def test_a_card_is_the_docstring_and_an_episode_that_earned_its_reward(self):
        done = run("list", "envs", "rstar2/MathFence-v0")
        assert done.exit_code == 0, done.output
        for words in ("## Action space", "problems:", "**system**", "```python", "Reward 1, answered."):
            assert words in done.output

    def test_the_episode_can_be_left_out(self):
        done = run("list", "envs", "rstar2/MathFence-v0", "--no-sample")
        assert "**user**" not in done.output
        assert json.loads(run("list", "envs", "rstar2/MathFence-v0", "--no-sample", "--json").stdout)["episode"] is None

    def test_an_unknown_id_suggests_the_nearest(self):
        done = run("list", "envs", "rstar2/MathFense-v0")
        assert done.exit_code == 2
        assert "Did you mean 'rstar2/MathFence-v0'" in " ".join(done.output.split())
        with pytest.raises(UnknownNameError):
            card("CartPole-v1")

    @pytest.mark.parametrize("named", ["./mine.py", "./mine.py:mine/Wait-v0", "mine:mine/Wait-v0", "mine/Wait"])
    def test_the_users_own_environment_is_shown_by_every_name_that_eval_takes(self, tmp_path, monkeypatch, named):
        (tmp_path / "mine.py").write_text(OWN)
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "mine", raising=False)
        try:
            if named == "mine/Wait":
                importlib.import_module("mine")
            done = run("list", "envs", named, "--no-sample")
        finally:
            gym.registry.pop("mine/Wait-v0", None)
            sys.modules.pop("mine", None)
        assert done.exit_code == 0, done.output
        assert "Waits for the word go." in done.output
        assert "patience=3" in done.output

    def test_an_environment_whose_extra_is_missing_names_the_extra(self, monkeypatch):
        monkeypatch.delitem(gym.registry, "rstar2/ReasoningGym-v0", raising=False)
        for named in ("rstar2/ReasoningGym-v0", "rstar2/ReasoningGym"):
            done = run("list", "envs", named)
            assert done.exit_code == 2
            assert "pip install 'rstar2-env[reasoning-gym]'" in " ".join(done.stderr.split())

    def test_the_common_sections_are_told_apart_from_the_arguments(self):
        shown = card("rstar2/MathTool-v0")
        assert "Version history" in shown.sections
        assert "Args:" not in shown.sections["Version history"]
        assert shown.line == "A math problem, a Python tool, and a verifiable reward."

    def test_no_text_can_close_the_fence_that_it_is_shown_in(self):
        shown = written([Message("user", "```\n````python\nx")])
        assert re.findall(r"^`{5,}", shown, re.MULTILINE) == ["`````", "`````"]


@pytest.mark.usefixtures("_sandbox")
class TestGallery:
    @pytest.mark.parametrize("env_id", IDS)
    def test_the_sample_is_the_same_every_time_and_ends(self, env_id):
        first, second = sample_episode(env_id), sample_episode(env_id)
        assert first.messages == second.messages
        assert first.end == "answered"

    def test_the_page_is_up_to_date(self):
        # Regenerate it with: rstar2 list envs --markdown > docs/environments.md
        page = PAGE.read_text("utf-8")
        for made, there in zip(gallery().split("\n## "), page.split("\n## "), strict=True):
            assert made == there
