"""``benchmarks/real_model_engines.py`` on a tiny model: the engines play the same episodes, and a run is continued."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from rstar2_env.rollout import Generation, SamplingParams

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def engines(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    pytest.importorskip("transformers", reason="needs the extra 'train'")
    return benchmark_named("real_model_engines")


class Counting:
    """An engine that writes the token 5, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        self.asked.append((len(ids), params.max_tokens))
        return Generation([5] * params.max_tokens, [], "length", 0)


def test_an_episode_grows_by_its_turns_and_the_answers(engines: ModuleType) -> None:
    episodes, engine = engines.Episodes(2, prompt=10, turns=2, turn=6, answer=3), Counting()
    asyncio.run(episodes.play(engine, 0))
    lengths = episodes.lengths()
    assert sum(tokens for _, tokens in engine.asked) == episodes.written
    assert sorted(engine.asked) == sorted(
        pair for first, second in lengths.tolist() for pair in ((10, first), (10 + first + 3, second))
    )


@pytest.mark.proof
def test_engines_play_as_many_tokens_and_a_later_call_goes_on(
    engines: ModuleType, tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--model", str(tiny_model), "--episodes", "4", "--turn", "5", "--json", str(tmp_path / "runs.json")]
    command += ["--engines", "ours", "generate"]
    first = engines.main([*command, "--rounds", "1"])
    for name in ("ours", "generate"):
        one = first[name]
        assert one["tokens_s"] * one["seconds"] == pytest.approx(engines.Episodes(4, turn=5).written)
    again = engines.main([*command, "--rounds", "2"])
    for name in ("ours", "generate"):
        assert again[name]["runs"][0] == first[name]["runs"][0]
        assert len(again[name]["runs"]) == 2
    assert "ours is" in capsys.readouterr().out


def test_a_turn_of_another_length_is_an_error(engines: ModuleType) -> None:
    class Short(Counting):
        async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
            found = await super().generate(ids, params)
            return Generation(found.ids[1:], [], "length", 0)

    with pytest.raises(RuntimeError, match=r"a turn has \d+ tokens, and \d+ were asked for"):
        asyncio.run(engines.Episodes(2, turn=6).play(Short(), 0))


def test_runs_of_other_episodes_are_not_continued(engines: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "runs.json"
    engines.Runs(file, {"count": 4}).add("ours", {"seconds": 1.0})
    assert engines.Runs(file, {"count": 4}).done("ours") == 1
    assert engines.Runs(file, {"count": 8}).done("ours") == 0


def test_an_engine_that_fails_is_left_out_with_the_reason(engines: ModuleType, tmp_path: Path) -> None:
    figures = engines.main(["--model", str(tmp_path / "absent"), "--engines", "ours", "--rounds", "2"])
    assert "the process ended" in figures["ours"]["failed"]
