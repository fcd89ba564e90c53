"""Claims about agents that ask another agent: what they play, when they stop asking, and that every token counts."""

from __future__ import annotations

import pytest
from scripted_model import ScriptedModel, answer, in_turn, tokens_of

from rstar2_env.agents import make
from rstar2_env.agents.self_consistency import decided, winner
from rstar2_env.core.errors import ConfigurationError, UnknownNameError, UnusableReplyError
from rstar2_env.dialects import make_dialect
from rstar2_env.evaluation.run import evaluate

CALL = make_dialect("rstar2").format_call("nope", {})
WRAPPERS = ["self_consistency", "best_of_k", "reflect", "budget_forcing"]


def played(name, *replies, told=None, **options):
    """An agent over a model that gives these replies, and its first turn."""
    agent = make(name, agent=ScriptedModel(in_turn(*replies), told), **options)
    agent.reset("What is it?", {}, seed=3)
    return agent, agent.act("What is it?", {})


class TestEveryOne:
    @pytest.mark.parametrize("name", WRAPPERS)
    def test_wraps_an_agent_that_is_written_with_options(self, name):
        agent = make(f"{name}:agent=(random_text:length=3,answers=1,calls=0)")
        agent.reset("?", {}, seed=1)
        assert "answer" in agent.act("?", {})

    @pytest.mark.parametrize("name", WRAPPERS)
    @pytest.mark.parametrize(("inner", "why"), [("oracle", "the gold answer"), ("human", "needs the terminal")])
    def test_refuses_an_agent_that_cannot_be_asked(self, name, inner, why):
        with pytest.raises(ConfigurationError, match=why):
            make(name, agent=inner)

    @pytest.mark.parametrize("name", WRAPPERS)
    def test_names_the_nearest_agent(self, name):
        with pytest.raises(UnknownNameError, match="Did you mean 'random_text'"):
            make(name, agent="random_texts")

    def test_counts_words_of_an_agent_that_counts_nothing_and_says_so(self):
        agent = make("best_of_k", agent='scripted:turns=["one two three"]', scorer=lambda asked, question, turn: 0.0)
        agent.reset("?", {}, seed=1)
        agent.act("?", {})
        assert agent.usage == {"requests": 4, "completion_tokens": 12, "estimated_tokens": 12}

    def test_is_evaluated_with_what_it_spent(self):
        options = {"agent": ScriptedModel(lambda text, seed: answer(seed % 2)), "k": 4, "early_stop": False}
        found = evaluate("rstar2/Game24-v0", "self_consistency", agent_options=options, episodes=3, workers=1)
        assert found.summary.usage["requests"] == 12
        assert found.summary.usage["completion_tokens"] == 12 * tokens_of(answer(0))
        assert all(episode.recorded_tokens == 4 * tokens_of(answer(0)) for episode in found.episodes)

    def test_goes_on_from_the_turn_that_was_played(self):
        told = []
        agent, first = played("self_consistency", answer(1), answer(2), answer(2), answer(3), told=told, k=3)
        assert (first, told) == (answer(2), ["What is it?"] * 3)
        assert agent.act("And now?", {}) == answer(3)
        # Two of three, and the third is not asked.
        assert told[3:] == ["And now?"] * 2

    @pytest.mark.parametrize("name", WRAPPERS)
    def test_goes_on_with_the_agent_whose_turn_was_played(self, name):
        scripted = {"turns": [f"RIGHT {CALL}", answer(1), "never"]}
        agent = make(name, agent=["scripted", scripted])
        agent.reset("?", {}, seed=0)
        assert [agent.act("?", {}) for _ in range(2)] == scripted["turns"][:2]

    def test_leaves_out_a_reply_that_cannot_be_played_and_raises_when_there_is_no_other(self):
        def refusing(*bad):
            def reply(text, seed):
                calls.append(1)
                if len(calls) in bad:
                    raise UnusableReplyError("refused", "No.")
                return answer(7)

            calls = []
            agent = make("self_consistency", agent=ScriptedModel(reply), k=2)
            agent.reset("?", {}, seed=0)
            return agent

        assert refusing(1).act("?", {}) == answer(7)
        with pytest.raises(UnusableReplyError):
            refusing(1, 2).act("?", {})


class TestSelfConsistency:
    def test_plays_what_most_turns_answer(self):
        _, turn = played("self_consistency", answer(1), answer(2), answer(2), answer(1), answer("2 "), k=5)
        assert turn == answer(2)

    def test_a_turn_that_calls_votes_for_going_on(self):
        assert played("self_consistency", answer(1), CALL, CALL, k=3)[1] == CALL
        assert played("self_consistency", answer(1), CALL, answer(1), k=3)[1] == answer(1)

    @pytest.mark.parametrize(
        ("votes", "left", "known"),
        [
            ("aaa", 2, True),  # three of five
            ("aa", 3, False),
            ("aa", 2, True),  # a tie goes to the answer that was first
            ("abb", 1, False),  # a would tie, and was first
            ("abbb", 1, True),
            ("", 1, False),
            ("", 0, True),
        ],
    )
    def test_stops_when_the_rest_cannot_change_the_winner(self, votes, left, known):
        assert decided(list(votes), left) is known

    @pytest.mark.parametrize("k", [3, 4, 5])
    def test_stopping_early_never_changes_the_winner(self, k):
        from itertools import product

        for votes in product("abc", repeat=k):
            for heard in range(1, k + 1):
                if decided(list(votes[:heard]), k - heard):
                    assert winner(list(votes[:heard])) == winner(list(votes))
                    break
        assert not decided(["a"], k - 1)

    def test_stopping_early_saves_tokens(self):
        early, _ = played("self_consistency", answer(1), k=9)
        late, _ = played("self_consistency", answer(1), k=9, early_stop=False)
        assert (early.usage["requests"], late.usage["requests"]) == (5, 9)

    def test_nothing_more_is_asked_when_the_tokens_are_spent(self):
        agent, _ = played("self_consistency", answer(1), k=9, tokens=2 * tokens_of(answer(1)), early_stop=False)
        assert agent.usage["requests"] == 2


class TestBestOfK:
    def test_plays_the_turn_with_the_highest_score(self):
        turns = [answer(1), answer(33), answer(2)]
        assert played("best_of_k", *turns, k=3, scorer=lambda asked, question, turn: len(turn))[1] == answer(33)

    def test_asks_the_agent_itself_and_counts_that(self):
        replies = [answer(1), "No.", answer(2), "Yes!", answer(3), "I say no"]
        agent, turn = played("best_of_k", *replies, k=3)
        assert turn == answer(2)
        assert agent.usage["completion_tokens"] == sum(map(tokens_of, replies))

    def test_stops_at_a_score_that_is_enough(self):
        agent, turn = played("best_of_k", answer(1), "Yes", answer(2), "Yes", k=5, enough=1)
        assert (turn, agent.usage["requests"]) == (answer(1), 2)

    def test_a_scorer_of_ones_own_is_named_by_its_file(self, tmp_path):
        (tmp_path / "shortest.py").write_text("def shortest(asked, question, turn):\n    return -len(turn)\n")
        scorer = f"{tmp_path}/shortest.py:shortest"
        assert played("best_of_k", answer(111), answer(2), k=2, scorer=scorer)[1] == answer(2)

    def test_an_unknown_scorer_names_the_nearest(self):
        with pytest.raises(UnknownNameError, match="Did you mean 'yes'"):
            make("best_of_k", agent="random_text", scorer="yess")


class TestReflect:
    def test_tries_again_with_what_was_said(self):
        told = []
        agent, turn = played("reflect", answer(1), "One is too small.", answer(2), "RIGHT", told=told)
        assert turn == answer(2)
        assert "One is too small." in told[2]
        assert answer(1) in told[2]
        assert agent.usage["requests"] == 4

    def test_the_last_try_is_played_unread(self):
        agent, turn = played("reflect", answer(1), "Wrong.", answer(2), "Wrong.", answer(3), "Wrong.", tries=3)
        assert (turn, agent.usage["requests"]) == (answer(3), 5)

    def test_a_critic_of_its_own_counts_too(self):
        critic = ScriptedModel(in_turn("Wrong, I say.", "RIGHT"))
        agent, turn = played("reflect", answer(1), answer(2), critic=critic)
        assert turn == answer(2)
        assert agent.usage["completion_tokens"] == 2 * tokens_of(answer(1)) + tokens_of("Wrong, I say. RIGHT")


class TestBudgetForcing:
    def test_makes_a_short_thought_go_on(self):
        told = []
        _, turn = played("budget_forcing", "It is 1.</think>1", " no, 2.</think>2", told=told, least=4)
        assert turn == "It is 1.\nWait no, 2.</think>2"
        assert told[1].endswith("It is 1.\nWait\n\nGo on exactly from there.")

    def test_waits_no_more_often_than_told(self):
        agent, turn = played("budget_forcing", "so", least=100, waits=3)
        assert turn == "so\nWaitso\nWaitso\nWaitso"
        assert agent.usage["requests"] == 4

    def test_cuts_a_long_thought_and_makes_it_answer(self):
        agent, turn = played("budget_forcing", "one two three four five</think> 5", " 3", most=3)
        assert turn == "one two three\n</think>\nFinal answer: 3"
        assert agent.usage["requests"] == 2

    def test_leaves_a_thought_of_the_right_length_alone(self):
        agent, turn = played("budget_forcing", "one two three</think> 3", least=3, most=3)
        assert (turn, agent.usage["requests"]) == ("one two three</think> 3", 1)

    def test_an_agent_that_can_go_on_is_not_shown_its_thought(self):
        class GoesOn(ScriptedModel):
            def go_on(self, observation, info, begun):
                return f"[{begun}]"

            def __deepcopy__(self, memo):
                return GoesOn(self._reply)

        agent = make("budget_forcing", agent=GoesOn(in_turn("hm")), least=2, waits=1)
        agent.reset("?", {}, seed=0)
        assert agent.act("?", {}) == "hm\nWait[hm\nWait]"

    def test_refuses_more_at_least_than_at_most(self):
        with pytest.raises(ConfigurationError, match=r"`most` \(3 tokens\); got 4"):
            make("budget_forcing", agent="random_text", least=4, most=3)
