"""``hard_focus``: uniform, then ever fewer of the hardest."""

from __future__ import annotations

from collections import Counter

from outcomes import steps

from rstar2_env.core.episode import Episode
from rstar2_env.core.run_folder import RunWriter
from rstar2_env.trainers.samplers.hard_focus import HardFocus

IDS = [f"p{n:02}" for n in range(16)]
RATES = {name: at / 16 for at, name in enumerate(IDS)}


def test_the_first_stage_plays_every_problem_once():
    sampler = HardFocus(IDS, least=2)
    assert set(Counter(steps(sampler, RATES, 4, episodes=16)).values()) == {1}
    assert sampler.problems == IDS[:8]
    sampler = HardFocus(IDS, least=2, after=6)
    steps(sampler, RATES, 5, episodes=16)
    assert len(sampler.problems) == 16


def test_it_narrows_to_the_hardest_and_stops_at_the_least():
    sampler = HardFocus(IDS, least=3, every=5)
    steps(sampler, RATES, 4, episodes=16)
    sizes = []
    for _ in range(4):
        assert set(steps(sampler, RATES, 5, episodes=16)) <= set(IDS[: (sizes or [8])[-1]])
        sizes.append(len(sampler.problems))
        assert sampler.problems == IDS[: sizes[-1]]
    assert sizes == [4, 3, 3, 3]


def test_each_set_is_part_of_the_one_before():
    sampler = HardFocus(IDS, least=2, every=1, keep=0.8)
    before = set(IDS)
    for step in range(20):
        steps(sampler, {name: ((7 * at + 5 * step) % 17) / 16 for at, name in enumerate(IDS)}, 1, episodes=16)
        assert set(sampler.problems) <= before
        before = set(sampler.problems)
    assert len(before) == 2


def test_what_was_never_played_counts_as_solved():
    sampler = HardFocus(IDS, least=2, after=1)
    played = steps(sampler, dict.fromkeys(IDS, 0.5), 1)
    assert set(played) <= set(sampler.problems)


def test_an_evaluation_replaces_the_first_stage(tmp_path):
    writer = RunWriter(tmp_path / "measured", kind="evaluation")
    writer.begin({})
    writer.held_out(0, [Episode(problem_id=name, end="answered", correct=name != "p07") for name in IDS])
    sampler = HardFocus(IDS, least=1, keep=0.01, rates=str(tmp_path / "measured"))
    assert set(steps(sampler, RATES, 3)) == {"p07"}
