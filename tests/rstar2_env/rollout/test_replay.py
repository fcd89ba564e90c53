"""Branches: an episode that begins as another did goes on from any token of the policy's, in the same place."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from scripted_engine import EchoEnv, call, echo_player, math_tool, scripted, turns_of

from rstar2_env.core.errors import BranchError
from rstar2_env.core.status import ToolStatus
from rstar2_env.rollout import Budget

pytestmark = pytest.mark.usefixtures("no_thread_left")


def run(player: Any, token_of: Any, **options: Any) -> Any:
    """Play an episode and one branch of it."""

    async def both() -> Any:
        parent = await player.episode(group=4, seed=7, sampling_seed=1)
        return parent, await player.branch(parent, token_of(parent), sampling_seed=2, **options)

    return asyncio.run(both())


def test_a_branch_shares_every_token_before_and_draws_the_rest() -> None:
    engine = scripted(lambda text: "stop" if turns_of(text) == 2 else f"go ahead {turns_of(text)}")
    with echo_player(engine) as player:

        async def both() -> Any:
            parent = await player.episode(group=4, seed=7, sampling_seed=1)
            middle = parent.steps[1].start + 2
            asked = len(engine.calls)
            engine.policy = lambda text: "stop" if text.endswith("n") or turns_of(text) else "?"
            return parent, middle, asked, await player.branch(parent, middle, sampling_seed=2)

        parent, middle, asked, branch = asyncio.run(both())
    assert branch.completion_ids[:middle] == parent.completion_ids[:middle]
    assert branch.logprobs[:middle] == parent.logprobs[:middle]
    assert branch.mask[:middle] == parent.mask[:middle]
    assert (branch.group, branch.seed, branch.prompt_ids) == (4, 7, parent.prompt_ids)
    # The first turn is given, the second begins as in the parent: the engine is asked once, and goes on after it.
    assert len(engine.calls) == asked + 1
    ids, params = engine.calls[asked]
    assert ids == parent.prompt_ids + parent.completion_ids[:middle]
    assert params.max_tokens == player.budget.tokens - middle
    assert [turn.start for turn in branch.steps] == [turn.start for turn in parent.steps][: branch.turns]
    said = [message.content for message in branch.messages if message.role == "assistant"]
    assert said[0] == "go ahead 0"
    assert said[1].startswith(str(engine.codec.tokenizer.decode(parent.completion_ids[parent.steps[1].start : middle])))
    assert said[1].endswith("stop")
    assert branch.reward == 1.5


@pytest.mark.parametrize("at", ["the end of the first turn", "the beginning of the second"])
def test_the_end_of_a_turn_and_the_beginning_of_the_next_are_one_place(at: str) -> None:
    engine = scripted(lambda text: "stop" if turns_of(text) == 1 else "go")
    with echo_player(engine) as player:
        parent, branch = run(
            player, lambda parent: parent.steps[0].stop if at.endswith("first turn") else parent.steps[1].start
        )
    assert branch.completion_ids == parent.completion_ids
    assert len(engine.calls) == 3


def test_a_branch_at_the_beginning_is_a_whole_new_episode() -> None:
    engine = scripted(lambda text: "stop")
    with echo_player(engine) as player:
        parent, branch = run(player, lambda parent: 0)
    assert branch.completion_ids == parent.completion_ids
    assert len(engine.calls) == 2


def test_the_budget_counts_what_is_shared() -> None:
    engine = scripted(lambda text: "a long turn of many words that goes on and on")
    with echo_player(engine, budget=Budget(tokens=12)) as player:
        _, branch = run(player, lambda parent: 5)
    assert len(branch.completion_ids) == 12
    assert branch.end == "tokens"


def test_tool_calls_are_replayed_by_the_sandbox() -> None:
    turns = [call("x = 6; print(x)"), call("print(x * 7)"), "<answer>\\boxed{42}</answer>"]
    engine = scripted(lambda text: turns[text.count("<|im_start|>assistant") - 1])
    with echo_player(engine, math_tool()) as player:
        parent, branch = run(player, lambda parent: parent.steps[2].start)
    assert branch.statuses == parent.statuses == [ToolStatus.OK, ToolStatus.EXCEPTION]
    assert branch.completion_ids == parent.completion_ids
    assert branch.correct


@pytest.mark.parametrize("where", ["observation", "after the last turn", "nothing"])
def test_a_place_that_is_no_turn_of_the_policy_is_refused(where: str) -> None:
    engine = scripted(lambda text: "stop" if turns_of(text) == 1 else "go")
    places = {
        "observation": lambda parent: parent.steps[0].stop + 1,
        "after the last turn": lambda parent: parent.steps[-1].stop,
        "nothing": lambda parent: len(parent.completion_ids) + 5,
    }
    with echo_player(engine) as player, pytest.raises(BranchError, match="cannot be branched at token"):
        run(player, places[where])


class Clock(EchoEnv):
    """Shows something else every time."""

    shown = 0

    def step(self, action: str) -> Any:
        Clock.shown += 1
        text, *rest = super().step(action)
        return (f"{text} at {Clock.shown}", *rest)


def test_an_environment_that_shows_something_else_is_told_and_not_trained_on() -> None:
    engine = scripted(lambda text: "stop" if turns_of(text) == 2 else "go")
    with echo_player(engine, Clock) as player, pytest.raises(BranchError, match="before turn 2"):
        run(player, lambda parent: parent.steps[2].start)


class Shorter(EchoEnv):
    """Every later episode has fewer turns."""

    def reset(self, **arguments: Any) -> Any:
        returned = super().reset(**arguments)
        self._left = 4 if len(self.resets) == 1 else 1
        return returned


def test_a_replay_that_ends_before_is_told() -> None:
    engine = scripted(lambda text: "go")
    with (
        echo_player(engine, Shorter) as player,
        pytest.raises(BranchError, match=r"ended \(truncated\) before token"),
    ):
        run(player, lambda parent: parent.steps[2].start)


def test_a_failure_in_a_branch_is_the_episodes() -> None:
    engine = scripted(lambda text: "boom" if turns_of(text) == 1 and len(engine.calls) > 2 else "go")
    with echo_player(engine, lambda: EchoEnv(turns=2)) as player:
        _, branch = run(player, lambda parent: parent.steps[1].start)
    assert branch.failed
