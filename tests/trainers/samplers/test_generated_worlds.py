"""``generated_worlds``: configurations by the rule and by a model, in cycles, as problems to play and grade."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import pytest
from outcomes import steps, went
from small_run import collector

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.dialects import make_dialect
from rstar2_env.problems import load_problems
from rstar2_env.trainers.samplers.generated_worlds import GeneratedWorlds

VARY: dict[str, Any] = {"numbers": [2, 3, 5], "largest": [10, 30]}
EASY, HARD = "countdown:largest=10,numbers=2", "countdown:largest=30,numbers=5"


def sampler_of(**options: Any) -> GeneratedWorlds:
    return GeneratedWorlds(0, **{"vary": VARY, "worlds": ("countdown",), "every": 2, "original": 1, **options})


def one_cycle(sampler: GeneratedWorlds, rate: float, of_worlds: float = 0.5) -> None:
    """Play a cycle in which every configuration succeeds at a rate, and every world at another one."""
    for _ in range(3):
        starts = sampler.draw(16)
        rates = [rate if start.kind.startswith("generated/") else of_worlds for start in starts]
        sampler.observe([went(start, round(8 * own)) for start, own in zip(starts, rates, strict=True)])


def test_the_first_configurations_are_spread_from_the_easiest_to_the_hardest() -> None:
    assert sampler_of(count=2).configurations == [EASY, HARD]
    assert sampler_of(count=1).configurations == [EASY]
    assert [name[-1] for name in sampler_of(count=3).configurations] == ["2", "3", "5"]


def test_a_cycle_plays_configurations_then_the_worlds_and_the_worlds_stay_after_the_last() -> None:
    sampler = sampler_of(count=2, cycles=2)
    played = []
    for _ in range(8):
        starts = sampler.draw(12)
        played.append({start.kind for start in starts})
        sampler.observe([went(start, 4) for start in starts])
    generated, original = {f"generated/{EASY}", f"generated/{HARD}"}, {"original/countdown"}
    assert played == [generated, generated, original] * 2 + [original] * 2


@pytest.mark.parametrize(
    ("rate", "changed"),
    [(1.0, {0: 1, 1: 0}), (0.75, {0: 0, 1: 0}), (0.25, {0: 0, 1: 0}), (0.0, {0: 0, 1: -1})],
)
def test_a_configuration_moves_by_one_value_of_one_option(rate: float, changed: dict[int, int]) -> None:
    sampler = sampler_of(count=2)
    before = [list(one) for one in sampler._designed()]
    one_cycle(sampler, rate)
    moved = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(before, sampler._designed(), strict=True)]
    assert {at: sum(own) for at, own in enumerate(moved)} == changed, "the easiest and the hardest stay"
    assert all(sum(map(abs, own)) <= 1 for own in moved)


def test_a_configuration_without_a_counted_episode_stays() -> None:
    sampler = sampler_of(count=2)
    before = sampler.configurations
    for _ in range(3):
        sampler.observe([went(start, 0, 0) for start in sampler.draw(8)])
    assert sampler.configurations == before


def test_worlds_get_configurations_in_proportion_to_their_failures() -> None:
    worlds = ("arithmetic:level=1", "arithmetic:level=2")
    sampler = sampler_of(worlds=worlds, vary={"max_number": [9, 99, 999]}, count=4)
    assert [one[0] for one in sampler._designed()] == [0, 0, 1, 1], "nothing is known yet"
    well = load_problems(worlds[0]).name
    for _ in range(3):
        starts = sampler.draw(64)
        rights = [7 if start.kind == f"original/{well}" else 1 for start in starts]
        sampler.observe([went(start, right) for start, right in zip(starts, rights, strict=True)])
    assert [one[0] for one in sampler._designed()] == [0, 1, 1, 1], "1/8 and 7/8 of four; the tie to the first"


def test_worlds_are_by_default_those_of_the_environment() -> None:
    mixed = load_problems({"mix": [{"spec": "countdown:numbers=3"}, {"spec": "countdown:numbers=4"}]})
    sampler = GeneratedWorlds(0, mixed, vary={"largest": [10, 20]})
    assert {name.partition(":")[0] for name in sampler.configurations} == {"countdown"}
    assert len({name for name in sampler.configurations if "numbers=3" in name}) == 2


def test_an_environment_plays_and_grades_what_is_drawn() -> None:
    env = gym.make("rstar2/Countdown-v0")
    sampler = sampler_of(count=2)
    answer = make_dialect("rstar2").format_answer
    seen = set()
    for start in sampler.draw(8):
        problem = start.options["problem"]
        _, info = env.reset(seed=start.seed, options=dict(start.options))
        _, reward, *_ = env.step(answer(problem["answer"]))
        assert (reward, info["problem_id"]) == (1, problem["id"])
        seen.add((len(problem["numbers"]), max(problem["numbers"]) <= 10))
    assert {size for size, _ in seen} == {2, 5}
    assert (2, False) not in seen


JUDGE = """
from pathlib import Path

async def ask(prompt):
    Path(__file__).with_suffix(".asked").write_text(prompt)
    return Path(__file__).with_suffix(".reply").read_text()
"""


def block(number: int, text: str) -> str:
    return f"Environment {number}:\n```json\n{text}\n```\nSince it fails with many numbers.\n"


@pytest.fixture
def judge(tmp_path: Path) -> Path:
    file = tmp_path / "judge.py"
    file.write_text(JUDGE)
    chosen = '{"world": "countdown", "options": {"numbers": 5, "largest": 10}}'
    unknown = '{"world": "countdown", "options": {"numbers": 4}}'
    file.with_suffix(".reply").write_text(block(1, chosen) + block(2, unknown) + block(3, "{not JSON}"))
    return file


def test_a_model_designs_and_the_rule_replaces_what_it_lacks(judge: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = sampler_of(designer=f"{judge}:ask", count=3).configurations
    assert found == ["countdown:largest=10,numbers=5", *sampler_of(count=3).configurations[1:]]
    assert "Environment 2 in the reply of the model that designs worlds is left out" in caplog.text
    assert "lacks 2 of the 3 environments of this cycle" in caplog.text


def test_a_model_is_told_what_the_policy_can_do_and_which_values_there_are(judge: Path) -> None:
    sampler = sampler_of(designer=f"{judge}:ask", count=1)
    assert sampler.configurations == ["countdown:largest=10,numbers=5"]
    first = judge.with_suffix(".asked").read_text()
    assert "nothing was measured yet" in first
    assert "- numbers: 2 | 3 | 5" in first
    one_cycle(sampler, 0.125, 0.75)
    asked = judge.with_suffix(".asked").read_text()
    assert "- countdown: 75%" in asked
    assert '{"world": "countdown", "options": {"numbers": 5, "largest": 10}}\n```\nSuccess: 12%' in asked


def test_without_an_answer_of_the_model_the_rule_designs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "down.py"
    file.write_text(
        "from rstar2_env.core.errors import ServiceError\n\n"
        "async def ask(prompt):\n    raise ServiceError('it is down')\n"
    )
    with caplog.at_level(logging.WARNING):
        assert sampler_of(designer=f"{file}:ask").configurations == sampler_of().configurations
    assert "it is down" in caplog.text


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"worlds": ("gsm8k",)}, "'gsm8k' is not a procedural family"),
        ({"worlds": ()}, "set sampler.worlds"),
        ({"vary": {}}, "at least one option to vary"),
        ({"vary": {"numbers": []}}, "at least one option to vary"),
        ({"vary": {"depth": [1]}}, "depth"),
        ({"vary": {"numbers": [2, 99]}}, "numbers"),
        ({"low": 0.8}, "low=0.8 must not be above high=0.75"),
    ],
)
def test_what_cannot_be_generated_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        sampler_of(**options)


def test_a_combination_of_values_that_a_world_refuses_is_refused_before_the_run() -> None:
    vary = {"largest_target": [300, 100], "least_target": [10, 200]}
    with pytest.raises(ConfigurationError, match="does not accept the values largest_target=100, least_target=200: "):
        sampler_of(vary=vary)


def test_a_run_that_resumes_does_not_ask_the_model_again(judge: Path) -> None:
    before = sampler_of(designer=f"{judge}:ask", count=1)
    assert before.draw(1)
    asked = judge.with_suffix(".asked")
    asked.unlink()
    resumed = sampler_of(designer=f"{judge}:ask", count=1)
    resumed.load_state_dict(before.state_dict())
    assert resumed.configurations == before.configurations
    assert not asked.exists()


@pytest.mark.parametrize("text", ['{"world": ' + "[" * 100_000 + "}", '{"options": ' + "9" * 10_000 + "}"])
def test_a_reply_that_the_json_reader_refuses_is_left_out(
    text: str, judge: Path, caplog: pytest.LogCaptureFixture
) -> None:
    judge.with_suffix(".reply").write_text(block(1, text))
    with caplog.at_level(logging.WARNING):
        assert sampler_of(designer=f"{judge}:ask").configurations == sampler_of().configurations
    assert "Environment 1 in the reply of the model that designs worlds is left out" in caplog.text


def test_a_designer_is_refused_in_a_run_of_several_processes(judge: Path) -> None:
    designed = sampler_of(designer=f"{judge}:ask")
    assert collector(sampler=designed)
    several: Any = SimpleNamespace(rank=0, size=2)
    assert collector(sampler=sampler_of(), ranks=several)
    with pytest.raises(ConfigurationError, match=r"2 processes.*remove sampler\.designer"):
        collector(sampler=designed, ranks=several)


def test_an_unknown_designer_is_refused_before_the_run() -> None:
    with pytest.raises(UnknownNameError, match="reward judge"):
        sampler_of(designer="oracle")


def test_the_figures_name_the_cycle_and_the_shares() -> None:
    sampler = sampler_of(count=2)
    assert sampler.figures() == {"stage": 1, f"share/{EASY}": 0.5, f"share/{HARD}": 0.5}
    steps(sampler, {f"generated/{EASY}": 0.5, f"generated/{HARD}": 0.5}, 2)
    assert sampler.figures() == {"stage": 1, "share/countdown": 1}
