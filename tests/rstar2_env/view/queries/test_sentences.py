"""Sentences about a run say what plain Python counts over its rows, and their filters find these episodes."""

from __future__ import annotations

import pytest

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.run_folder import Decision, RunWriter
from rstar2_env.core.status import ToolStatus
from rstar2_env.view.index import RunIndex
from rstar2_env.view.queries.episodes import list_episodes
from rstar2_env.view.queries.sentences import sentences_of

OK, SYNTAX, TIMEOUT = ToolStatus.OK, ToolStatus.SYNTAX_ERROR, ToolStatus.TIMEOUT
PLAYED = [
    ([SYNTAX, OK], "answered", True),
    ([SYNTAX], "answered", True),
    ([OK, SYNTAX], "answered", False),
    ([TIMEOUT, SYNTAX], "turns", False),
    ([SYNTAX, SYNTAX, OK, OK], "answered", True),
    ([OK], "answered", True),
    ([], "answered", False),
    ([ToolStatus.UNAVAILABLE], "answered", False),
]
TIMES = {
    1: {"seconds/rollout": 6.0, "seconds/train": 1.0, "rollout/reward": 0.25, "eval/pass_rate": 0.5},
    2: {
        "seconds/rollout": 3.0,
        "policy/entropy": 0.5,
        "rollout/tokens": 40.0,
        "kl": 0.1,
        "mismatch/logp_difference": 0.01,
    },
    3: {"eval/reward": 1.0, "rollout/reward": 0.75, "eval/pass_rate": 0.375, "mismatch/logp_difference": 0.03},
    4: {"mismatch/logp_difference": 0.02, "policy/entropy": 0.125, "rollout/tokens": 60.5},
}

REWARDS = (1.0, 0.5, 0.8, 0.2, 1.0, 0.5, 0.7, 0.0)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    base = tmp_path_factory.mktemp("sentences")
    writer = RunWriter(base / "run")
    writer.begin({})
    group = [
        Episode(
            group=0,
            problem_id="p",
            messages=[Message("user", "?")],
            statuses=statuses,
            end=end,
            correct=correct,
            reward=reward,
        )
        for (statuses, end, correct), reward in zip(PLAYED, REWARDS, strict=True)
    ]
    reasons = ["", "quota", "quota", "draw", "", "", "", ""]
    writer.train(1, [group], [[Decision(not reason, reason) for reason in reasons]])
    with RunIndex(base / "run", base / "cache") as opened:
        assert opened.refresh()
        yield opened


TOLD = [
    ("Dropped from training: 38% of the episodes; reasons: quota 2, draw 1.", 3),
    ("Failed calls: 58.3% of 12; most frequent: syntax_error 6, timeout 1.", 5),
    (
        "After the first failed call of an episode: the policy answered (40%), the next call failed too (40%), "
        "the next call worked (20%).",
        5,
    ),
    ("Answered immediately after a failed call: 2 of 5 episodes with a failed call, 1 of them correct.", 2),
    (
        "Check for reward hacking: 1 of 4 wrong episodes have at least the mean reward of correct ones (0.75); 0 of 4 "
        "correct episodes made no call; the reward in training changed by +0.5 (step 1 to 3), and the held-out success "
        "by -12.5 points (step 1 to 3).",
        1,
    ),
    (
        "Check for collapse: entropy 0.125 at step 4 (0.5 at step 2), tokens per episode 60.5 at step 4 "
        "(40 at step 2).",
        None,
    ),
    (
        "Engine against trainer: at step 4, the log-probability of a token differs by 0.02 on average; 0.01 at step 2, "
        "at most 0.03 (step 3).",
        None,
    ),
    ("Time per step: 5 s on average (90% rollout, 10% training).", None),
]


@pytest.mark.parametrize("number", range(len(TOLD)))
def test_a_sentence_and_its_episodes(index, number):
    sentence = sentences_of(index, TIMES)[number]
    text, many = TOLD[number]
    assert sentence["text"] == text
    chosen = sentence["filter"]
    assert (None if chosen is None else list_episodes(index, {**chosen, "split": "train"})["total"]) == many


def test_the_parts_of_a_sentence_are_its_kinds_the_most_frequent_first_with_their_episodes(index):
    found = {name: chosen for sentence in sentences_of(index, TIMES) for name, chosen in sentence["parts"].items()}
    counts = {name: list_episodes(index, {**chosen, "split": "train"})["total"] for name, chosen in found.items()}
    assert list(counts) == ["quota", "draw", "syntax_error", "timeout", "answered", "failed", "ok"]
    assert counts == {"quota": 2, "draw": 1, "syntax_error": 5, "timeout": 1, "answered": 2, "failed": 2, "ok": 1}


def test_a_step_waits_for_episodes_that_are_played_ahead(index):
    ahead = {1: {"seconds/rollout": 9.0, "seconds/wait": 1.0, "seconds/train": 3.0}}
    sentence = sentences_of(index, ahead)[-1]
    assert sentence["text"] == "Time per step: 4 s on average (75% training, 25% waiting for the rollout)."
    assert sentence["metric"] == "seconds/rollout"


def test_the_plot_of_a_sentence_is_of_a_figure_that_it_tells(index):
    metrics = {1: {"policy/entropy": 0.5, "rollout/tokens": 40.0}, 2: {"rollout/tokens": 60.0}}
    (sentence,) = [one for one in sentences_of(index, metrics) if one["text"].startswith("Check for collapse")]
    assert sentence["text"] == "Check for collapse: tokens per episode 60 at step 2 (40 at step 1)."
    assert sentence["metric"] == "rollout/tokens"


def test_a_run_without_data_has_no_sentences(tmp_path):
    RunWriter(tmp_path / "run").begin({})
    with RunIndex(tmp_path / "run", tmp_path / "cache") as opened:
        assert opened.refresh()
        assert sentences_of(opened, {}) == []
