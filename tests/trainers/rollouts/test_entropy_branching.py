"""``entropy_branching``: how likely a branch is, how many episodes there are, and what branches share."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from branching_play import Words, played
from scripted_engine import EchoEnv
from small_run import SmallPlayer, collector

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.manner import Manner
from rstar2_env.core.turn import Turn
from rstar2_env.trainers.advantages.arpo import Arpo
from rstar2_env.trainers.ranks import ONE
from rstar2_env.trainers.rollouts.entropy_branching import EntropyBranching
from rstar2_env.trainers.samplers.base import Start


def with_entropies(*entropies):
    return Episode(end="answered", steps=[Turn(2 * at, 2 * at + 2, entropy=one) for at, one in enumerate(entropies)])


@pytest.mark.parametrize(("change", "chance"), [(-1, 0.3), (0, 0.5), (1, 0.7), (2.5, 1.0), (9, 1.0), (-9, 0.0)])
def test_the_chance_of_a_branch_grows_with_the_change_of_entropy(change, chance):
    episode = with_entropies(3.0, 3.0 + change, 1.0)
    assert EntropyBranching().chance(episode, 0) == pytest.approx(chance)
    before = EntropyBranching(of="before")
    assert before.chance(episode, 1) == pytest.approx(chance)
    # After the first turn, the released code compares that turn with itself.
    assert before.chance(episode, 0) == 0.5


def test_the_engine_is_asked_to_measure_what_the_entropy_is_over():
    assert EntropyBranching(candidates=5, tokens=7).manner == Manner(candidates=5, measured_tokens=7)


def test_an_entropy_that_nobody_measured_changes_nothing():
    assert EntropyBranching().chance(with_entropies(None, 4.0, None), 0) == 0.5


def test_by_default_exactly_the_episodes_branch_whose_entropy_has_risen():
    def branched(turn_that_rises, **options):
        part = EntropyBranching(initial=4, **options)
        engine = Words(turns=4, least=4, spread=lambda turn: 0.3 + 0.2 * (turn == turn_that_rises))
        (group,), _ = played(part, engine, groups=1)
        starts = {}
        for one in group:
            if one.parent:
                turn = [turn.start for turn in group[one.parent[0]].steps].index(one.parent[1])
                starts[turn] = starts.get(turn, 0) + 1
        return starts

    assert branched(1) == {1: 4}
    assert branched(2) == {2: 4}
    assert branched(None) == {}
    assert branched(1, of="before") == {2: 4}
    assert branched(1, threshold=0.9) == {}
    assert branched(None, threshold=0.4) == {1: 4}


@pytest.mark.parametrize(("initial", "beam"), [(None, 2), (1, 2), (2, 4), (8, 2), (99, 2)])
@pytest.mark.parametrize("probability", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("decide", ["threshold", "draw"])
def test_a_group_has_as_many_episodes_as_were_asked_for_and_no_two_alike(initial, beam, probability, decide):
    part = EntropyBranching(initial=initial, beam=beam, probability=probability, decide=decide)
    groups, _ = played(part, Words())
    for group in groups:
        assert len(group) == 8
        assert len({id(episode) for episode in group}) == 8
        branches = [episode for episode in group if episode.parent is not None]
        assert len(branches) <= 8 - min(8, initial or 4)
        if probability == 0:
            assert not branches
        elif probability == 1 and (initial or 4) < 8:
            assert branches


def test_branches_share_every_token_with_their_parents_and_none_by_draws():
    groups, _ = played(EntropyBranching(initial=2, probability=1.0), Words())
    found = 0
    for group in groups:
        for episode in group:
            if episode.parent is None:
                continue
            place, token = episode.parent
            parent = group[place]
            for name in ("completion_ids", "mask", "logprobs"):
                assert getattr(episode, name)[:token] == getattr(parent, name)[:token]
            assert episode.completion_ids[token:] != parent.completion_ids[token:]
            # They part where the environment has answered, at the beginning of a turn of both.
            assert episode.mask[token - 1] == 0
            assert token in [turn.start for turn in parent.steps]
            assert token in [turn.start for turn in episode.steps]
            found += 1
    assert found >= 9


def test_a_branch_may_branch_again_later_and_not_before():
    groups, _ = played(EntropyBranching(initial=1, probability=1.0), Words(turns=5, least=4), groups=1, size=8)
    (group,) = groups
    # One path, then each of them branches once after every answer: 1, 2, 4, 8.
    assert [episode.parent[0] if episode.parent else None for episode in group] == [None, 0, 0, 1, 0, 1, 2, 3]
    turns = [[turn.start for turn in group[one.parent[0]].steps].index(one.parent[1]) for one in group[1:]]
    assert turns == [1, 2, 2, 3, 3, 3, 3]


def test_more_turns_are_branched_where_the_policy_is_less_decided():
    def share(spread):
        part = EntropyBranching(initial=100, weight=5.0, decide="draw", of="before")
        (group,), _ = played(part, Words(turns=3, least=2, spread=spread), groups=1, size=300)
        # The second answer is the last that a branch may follow: half of 100 have branched after the first.
        later = [one for one in group if one.parent and one.parent[1] == group[one.parent[0]].steps[2].start]
        once = sum(one.parent is not None for one in group) - len(later)
        return once / 100, len(later) / (100 + once)

    vocabulary = len(Words().codec.tokenizer)
    change = 0.04 * np.log(vocabulary)
    first, later = share(lambda turn: 0.3 + change * (turn == 1))
    assert first == pytest.approx(0.5, abs=0.15)
    assert later == pytest.approx(0.7, abs=0.12)
    assert share(lambda turn: 0.3 + change * (turn == 0))[1] == pytest.approx(0.3, abs=0.12)


def test_every_turn_of_a_path_is_drawn_for_anew():
    part = EntropyBranching(initial=40, decide="draw", weight=0.0)
    (group,), _ = played(part, Words(turns=3, least=3), groups=1, size=200)
    turns = {}
    for one in group:
        if one.parent and one.parent[0] < 40:
            starts = [turn.start for turn in group[one.parent[0]].steps]
            turns.setdefault(one.parent[0], set()).add(starts.index(one.parent[1]))
    assert {1} in turns.values()
    assert {2} in turns.values()
    assert {1, 2} in turns.values()


def test_the_groups_do_not_depend_on_how_long_turns_take_nor_on_the_process():
    def ids(groups):
        return [[(episode.completion_ids, episode.parent) for episode in group] for group in groups]

    plain, _ = played(EntropyBranching(initial=2, decide="draw"), Words())
    slow, _ = played(EntropyBranching(initial=2, decide="draw"), Words(delay_s=lambda rng: 0.01 * rng.random()))
    assert ids(plain) == ids(slow)

    class Later(EntropyBranching):
        """The same groups as the second and third of another call."""

        async def __call__(self, starts, size, play):
            return await super().__call__([Start(start.seed + 1, start.options) for start in starts], size, play)

    moved, _ = played(Later(initial=2, decide="draw"), Words(), groups=2, first=1)
    assert ids(moved) == ids(plain[1:])


def test_an_environment_that_does_not_repeat_itself_is_played_from_the_start():
    class Changing(EchoEnv):
        told = 0

        def step(self, action):
            Changing.told += 1
            text, *rest = super().step(action)
            return f"{text} {Changing.told}", *rest

    groups, _ = played(EntropyBranching(initial=2, probability=1.0), Words(), env=Changing)
    assert [len(group) for group in groups] == [8] * 3
    assert all(episode.parent is None and episode.available for group in groups for episode in group)


def test_an_episode_that_failed_is_not_branched():
    class Failing(EchoEnv):
        def step(self, action):
            if "red" in action:
                raise OSError("the environment failed")
            return super().step(action)

    groups, _ = played(EntropyBranching(initial=4, probability=1.0), Words(least=3), env=Failing, size=16)
    failed = [episode for group in groups for episode in group if episode.failed]
    assert failed
    assert all(len(group) == 16 for group in groups)
    for group in groups:
        assert all(group[episode.parent[0]].available for episode in group if episode.parent)


def test_the_shared_tokens_get_the_mean_of_their_branches():
    groups, _ = played(EntropyBranching(initial=2, probability=1.0), Words(), groups=1, size=6)
    (group,) = groups
    for number, episode in enumerate(group):
        episode.reward = float(number % 2)
    soft = Arpo(of="group_mean")([group], ONE)[0]
    hard = Arpo(of="group_mean", attribution="hard")([group], ONE)[0]
    child = next(episode for episode in group if episode.parent)
    parent, token = group[child.parent[0]], child.parent[1]
    shares = [one for one in group if one.completion_ids[:token] == parent.completion_ids[:token]]
    mean = np.mean([soft[group.index(one)] for one in shares])
    assert hard[group.index(child)][token - 1] == hard[group.index(parent)][token - 1] == pytest.approx(mean)
    assert hard[group.index(child)][-1] == soft[group.index(child)]


def test_a_group_that_needs_no_more_begins_no_branch():
    engine = Words()
    enough = lambda group: sum(episode is not None for episode in group) >= 5  # noqa: E731
    groups, _ = played(EntropyBranching(probability=1.0), engine, groups=1, settled=enough)
    ends = [episode.end for episode in groups[0]]
    assert len(ends) == 8
    assert 1 <= ends.count("cancelled") <= 3
    assert any(episode.parent and not episode.cancelled for episode in groups[0])


def test_a_player_whose_engine_reports_no_candidates_is_refused_before_it_plays():
    with pytest.raises(ConfigurationError, match="method `check_manner`, which SmallPlayer does not have"):
        collector(SmallPlayer(), rollout=EntropyBranching())


def test_the_episodes_of_a_process_that_is_stopped_leave_nothing_behind():
    async def run():
        from scripted_engine import echo_player

        from rstar2_env.trainers.step.group_play import GroupPlay

        engine = Words(delay_s=lambda rng: 5.0)
        with echo_player(engine) as player:
            play = GroupPlay(player, seed=1, step=0, first=0, size=4)
            task = asyncio.create_task(EntropyBranching()([Start(1)], 4, play))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return engine.asked

    assert asyncio.run(run()) == 2
