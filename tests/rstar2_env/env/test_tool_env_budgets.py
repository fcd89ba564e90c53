"""Budgets, our own failures, and faults that a middleware injects: what they end and who is blamed."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from toy_turns import RIGHT, RSTAR2, call, make, play, statuses

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.testing import StubTool
from rstar2_env.tools import ToolResult
from rstar2_env.verification import Reason, Verdict


class Bytes:
    """Tokens are bytes."""

    def encode(self, text, *, add_special_tokens=True):
        return list(text.encode("utf-8")) + [0] * add_special_tokens

    def decode(self, token_ids):
        return bytes(token_ids).decode("utf-8", "replace")


class TestBudgets:
    def test_the_calls_of_the_last_allowed_turn_are_not_run(self):
        env, tool = make(max_turns=2)
        text, reward, terminated, truncated, info = play(env, call(1), call(2) + RIGHT)
        assert [arguments["n"] for arguments, _ in tool.calls] == [1]
        assert (text, reward, terminated, truncated) == ("", 0.0, False, True)
        assert (info["end"], info["turns"], info["tool_calls"], info["tool_calls_total"]) == ("turns", 2, [], 1)

    def test_an_answer_in_the_last_allowed_turn_counts(self):
        env, _ = make(max_turns=2)
        assert play(env, call(), RIGHT)[1:4] == (1.0, True, False)

    def test_one_turn_is_enough_to_answer(self):
        env, _ = make(max_turns=1)
        assert play(env, RIGHT)[2:4] == (True, False)
        assert play(env, call())[2:4] == (False, True)

    def test_tokens_of_policy_and_tools_count_together(self):
        shown = len(RSTAR2.results([ToolResult("stub", ToolStatus.OK, "x" * 100)]))
        for spare, end in ((1, None), (0, "tokens")):
            env, tool = make("x" * 100, max_tokens=2 * len(call()) + shown + spare, tokenizer=Bytes())
            *_, truncated, info = play(env, call(), call())
            assert (truncated, info.get("end")) == (end is not None, end)
            assert len(tool.calls) == (1 if end else 2)

    def test_an_answer_ends_the_episode_before_the_tokens_do(self):
        env, _ = make(max_tokens=5, tokenizer=Bytes())
        assert play(env, RIGHT)[1:4] == (1.0, True, False)

    @pytest.fixture
    def slow_tool(self, monkeypatch):
        """A tool that takes ten seconds of a clock that only it moves."""
        now = [0.0]
        monkeypatch.setattr("rstar2_env.env.tool_env.time", SimpleNamespace(monotonic=lambda: now[0]))

        def work(arguments, context):
            now[0] += 10
            return "done"

        return StubTool(work)

    def test_time_ends_the_episode_between_turns(self, slow_tool):
        env, _ = make(max_seconds=10, tools=[slow_tool])
        *_, truncated, info = play(env, call(), call())
        assert (truncated, info["end"], len(slow_tool.calls)) == (True, "time", 1)

    def test_and_between_the_calls_of_one_turn_and_tells_of_those_that_ran(self, slow_tool):
        env, _ = make(max_seconds=25, tools=[slow_tool])
        _, _, terminated, truncated, info = play(env, call() * 50)
        assert (terminated, truncated, info["end"]) == (False, True, "time")
        assert len(slow_tool.calls) == len(info["tool_calls"]) == info["tool_calls_total"] == 3

    def test_time_is_the_episodes_and_starts_anew(self, slow_tool):
        env, _ = make(max_seconds=15, tools=[slow_tool])
        for _ in range(3):
            assert play(env, call())[2:4] == (False, False)

    def test_an_answer_ends_the_episode_before_the_time_does(self, slow_tool):
        env, _ = make(max_seconds=5, tools=[slow_tool])
        assert play(env, call(), RIGHT)[1:4] == (1.0, True, False)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"max_turns": 0}, "max_turns"),
            ({"max_turns": 2.5}, "max_turns"),
            ({"max_tokens": 0, "tokenizer": Bytes()}, "max_tokens"),
            ({"max_tokens": 5}, "tokenizer"),
            ({"max_seconds": 0}, "max_seconds"),
            ({"max_seconds": -1}, "max_seconds"),
            ({"max_text": 10}, "max_text"),
            ({"max_text": "long"}, "max_text"),
            ({"render_mode": "rgb_array"}, "render_mode"),
            ({"dialect": 7}, "dialect"),
            ({"problems": 7}, "problems"),
            ({"tools": [StubTool(), StubTool()]}, "stub"),
        ],
    )
    def test_options_out_of_their_range_are_refused_at_once(self, options, words):
        with pytest.raises(ConfigurationError, match=words):
            make(**options)


class TestOurOwnFailures:
    def test_an_unavailable_tool_truncates_and_blames_nobody(self):
        env, tool = make([ToolStatus.EXCEPTION, ToolStatus.UNAVAILABLE, ToolStatus.OK])
        text, reward, terminated, truncated, info = play(env, call() + call() + call())
        assert (text, reward, terminated, truncated, info["end"]) == ("", 0.0, False, True, "unavailable")
        assert statuses(info) == ["exception", "unavailable"]
        assert (info["tool_errors"], info["tool_calls_total"]) == (1, 1)
        assert len(tool.calls) == 2

    def test_an_unavailable_grader_truncates_and_blames_nobody(self):
        env, _ = make(grader=lambda problem, answer: Verdict(False, Reason.UNAVAILABLE, "pool"))
        _, reward, terminated, truncated, info = play(env, RIGHT)
        assert (reward, terminated, truncated, info["end"], info["correct"]) == (0.0, False, True, "unavailable", False)
        assert info["answer"] == "10"

    @pytest.mark.parametrize("reason", sorted(set(Reason) - {Reason.EQUAL, Reason.UNAVAILABLE}))
    def test_every_other_reason_is_an_answer_that_is_not_right(self, reason):
        env, _ = make(grader=lambda problem, answer: Verdict(False, reason, "x"))
        assert play(env, RIGHT)[1:4] == (0.0, True, False)


class TestMiddleware:
    def inject(self, status):
        return lambda call, context, go_on: ToolResult(call.name, status, "a fault", injected=True)

    def test_an_injected_fault_is_marked_and_not_the_policys(self):
        env, tool = make()
        env.unwrapped.tools.use(self.inject(ToolStatus.TIMEOUT))
        _, *_, info = play(env, call())
        assert info["tool_calls"][0]["injected"] is True
        assert tool.calls == []
        *_, info = env.step("done")
        assert (info["tool_errors"], info["tool_calls_total"]) == (0, 0)

    def test_an_injected_outage_goes_on(self):
        env, _ = make()
        env.tools.use(self.inject(ToolStatus.UNAVAILABLE))
        text, _, terminated, truncated, _ = play(env, call())
        assert (terminated, truncated) == (False, False)
        assert "a fault" in text

    def test_after_its_removal_calls_run_again(self):
        env, tool = make()
        fault = self.inject(ToolStatus.TIMEOUT)
        env.tools.use(fault)
        env.tools.remove(fault)
        play(env, call())
        assert len(tool.calls) == 1

    def test_it_stays_over_a_reset(self):
        env, tool = make()
        env.tools.use(lambda call, context, go_on: replace(go_on(call, context), text="changed"))
        assert "changed" in play(env, call())[0]
        assert "changed" in play(env, call())[0]
        assert len(tool.calls) == 2
