"""``keep_right``: right episodes alone, the best of each problem, and neither tail of the turns is learned."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import RunWriter
from rstar2_env.trainers.pipeline.base import Work
from rstar2_env.trainers.pipeline.stages.keep_right import KeepRight, best, path_score, tails

pytestmark = pytest.mark.train


def test_the_golden_numbers_of_the_path_score():
    one, two = [-2.0], [-1.0, -3.0]
    assert [path_score(one, alpha) for alpha in (0, 1, 2)] == [-2, -2, -2]
    assert [path_score(two, alpha) for alpha in (0, 1, 2)] == [-4, -2, -1]


def test_the_golden_tails():
    low, high = tails([float(one) for one in range(10, 0, -1)], 0.1, 0.1)
    assert (low, high) == (2, 9)
    assert tails([3.0, 1.0, 2.0], 0.1, 0.1) == (1, 3)  # a tenth of three is none
    assert tails([3.0, 1.0, 2.0], 0.0, 0.4) == (1, 2)
    assert tails([], 0.1, 0.1) == (0, math.inf)


def said(*turns: str) -> list[Message]:
    return [message for turn in turns for message in (Message("user", "go on"), Message("assistant", turn))]


def test_of_each_problem_the_best_paths_are_kept_and_none_twice():
    right = [("p", said("a")), ("p", said("b", "c")), ("p", said("a")), ("q", said("d"))]
    scored = [[[-2.0]], [[-1.0], [-1.0, -2.0]], [[-2.0]], [[-9.0]]]
    assert best(right, scored, 1, 0.0) == [0, 3]
    assert best(right, scored, 1, 2.0) == [1, 3]
    assert best(right, scored, 5, 0.0) == [0, 1, 3]


def episode(number: int, problem: str, correct: bool, turns: Sequence[str]) -> Episode:
    messages = [Message("user", problem), *said(*turns)[1:]]
    return Episode(
        group=number, problem_id=problem, messages=messages, correct=correct, end="answered", turns=len(turns)
    )


def played(folder: Path, episodes: Sequence[Episode]) -> str:
    writer = RunWriter(folder, kind="evaluation")
    writer.begin({})
    writer.held_out(0, episodes)
    return str(folder)


def kept(tmp_path: Path, **options: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    folder = tmp_path / "keep"
    folder.mkdir(exist_ok=True)
    figures = KeepRight(**options).run(Work(folder))
    return dict(figures), [json.loads(line) for line in (folder / "traces.jsonl").read_text().splitlines()]


def test_wrong_episodes_are_not_learned_and_surprising_turns_are_context(tmp_path, tiny_model):
    plain, noise = "aaaaaa", "~q#7Zx"
    episodes = [episode(n, f"p{n}", n != 3, [plain, noise if n == 5 else plain]) for n in range(6)]
    options = {"episodes": played(tmp_path / "eval", episodes), "model": str(tiny_model)}
    figures, traces = kept(tmp_path, **options, drop_low=0.0, drop_high=0.1)
    assert [trace["problem_id"] for trace in traces] == ["p0", "p1", "p2", "p4", "p5"]
    assert (figures["right"], figures["turns"], figures["turns_dropped_high"]) == (5, 10, 1)
    flat = [one for trace in traces for one in trace["perplexities"]]
    left_out = [
        (trace["problem_id"], at)
        for trace in traces
        for at, message in enumerate(one for one in trace["messages"] if one["role"] == "assistant")
        if message.get("train") is False
    ]
    worst = flat.index(max(flat))
    assert left_out == [(traces[worst // 2]["problem_id"], worst % 2)]
    assert min(flat) > 1


def test_what_is_left_out_has_no_mask_and_the_rest_has(tiny_model):
    from transformers import AutoTokenizer

    from rstar2_env.rollout import ChatCodec
    from rstar2_env.trainers.backends.trl.sft import encode_traces

    chat = ChatCodec(AutoTokenizer.from_pretrained(tiny_model))
    messages = [message.record() for message in said("first", "second")]
    whole, part = (
        encode_traces([{"messages": [*messages[:1], {**messages[1], **more}, *messages[2:]]}], chat, 1000)[0]
        for more in ({}, {"train": False})
    )
    assert part["input_ids"] == whole["input_ids"]
    learned = [i for i, own in zip(part["input_ids"], part["assistant_masks"], strict=True) if own]
    assert learned == chat.turn("second")
    assert sum(whole["assistant_masks"]) == len(chat.turn("first")) + len(chat.turn("second"))
    with pytest.raises(ConfigurationError, match="must contain a turn of the policy"):
        encode_traces([{"messages": [messages[0], {**messages[1], "train": False}]}], chat, 1000)


def test_earlier_traces_stay_and_nothing_to_learn_from_is_said(tmp_path, tiny_model):
    none = {"episodes": played(tmp_path / "eval", [episode(0, "p", False, ["x"])]), "model": str(tiny_model)}
    with pytest.raises(ConfigurationError, match="nothing to train on"):
        kept(tmp_path, **none)
    before = {"problem_id": "old", "messages": [one.record() for one in said("kept")]}
    (tmp_path / "before.jsonl").write_text(json.dumps(before) + "\n")
    figures, traces = kept(tmp_path, **none, earlier=str(tmp_path / "before.jsonl"))
    assert traces == [before]
    assert (figures["kept"], figures["new"]) == (0, 0)
    with pytest.raises(ConfigurationError, match="drop_low and drop_high must be less than 1"):
        KeepRight(**none, drop_low=0.5, drop_high=0.5).resolved()
