"""Logs of other trainers: what is read of them, and which lines are refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rstar2_env.core.errors import RecordFormatError
from rstar2_env.diagnosis import diagnose
from rstar2_env.diagnosis.foreign import read_foreign


def lines(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_the_history_of_trl_is_diagnosed(tmp_path: Path) -> None:
    history = [
        {"step": step, "loss": 0.0, "grad_norm": 0.0 if step > 5 else 0.3, "entropy": 0.4, "reward": 0.5, "kl": 0.01}
        for step in range(1, 12)
    ]
    state = {"log_history": [*history, {"step": 11, "train_runtime": 12.0, "train_loss": 0.0}]}
    (tmp_path / "trainer_state.json").write_text(json.dumps(state))
    for path in (tmp_path, tmp_path / "trainer_state.json"):
        found = diagnose(path)
        assert found.names == ["gradient_zero"]
        assert found.findings[0].since == 6
        assert not [change for change in found.findings[0].change if "--set" in change]
        assert "entropy_collapsed" in found.silent
        assert "episodes" in found.not_recorded["repetition"]


def test_the_figures_of_verl_have_the_names_of_this_package(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "metrics.jsonl",
        *(
            {"step": step, "data": {"actor/entropy": 0.01, "response_length/clip_ratio": 0.6, "val-core/x/acc": 0.3}}
            for step in range(1, 9)
        ),
    )
    assert set(diagnose(path).names) == {"entropy_collapsed", "cut_by_tokens"}
    assert read_foreign(path).evaluations[0].figures == {"pass_rate": 0.3}


def test_the_held_out_reward_of_trl_is_not_taken_from_its_deviation(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "log.jsonl",
        {"step": 1, "loss": 0.1, "eval_reward": 0.4, "eval_rewards/right/mean": 0.2, "eval_reward_std": 0.9},
    )
    assert read_foreign(path).evaluations[0].figures == {"pass_rate": 0.4}


def test_an_episode_with_a_field_of_another_type_is_named_by_its_line(tmp_path: Path) -> None:
    path = lines(tmp_path / "log.jsonl", {"step": 1, "prompt": "p", "completion": "c", "reward": 1.0, "tokens": None})
    with pytest.raises(RecordFormatError, match=r"log\.jsonl.*1.*cannot be read"):
        read_foreign(path)


def test_a_log_in_which_no_group_trains_for_two_reasons_is_named(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "log.jsonl", *({"step": step, "reward": 0.5, "frac_reward_zero_std": 1.0} for step in range(1, 16))
    )
    found = diagnose(path)
    assert found.findings[found.names.index("few_signals")].severity == "error"


def test_episodes_of_a_prompt_and_a_completion_are_read_with_their_groups(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "rollouts.jsonl",
        *(
            {
                "step": step,
                "input": f"question {group}",
                "output": f"[INST] {step} {member}",
                "score": 1.0,
                "group": group,
            }
            for step in range(1, 5)
            for group in range(3)
            for member in range(4)
        ),
    )
    record = read_foreign(path)
    assert [len(group) for group in record.steps[0].groups()] == [4, 4, 4]
    assert record.series("rollout/reward") == [(step, 1.0) for step in range(1, 5)]
    assert "template_wrong" in diagnose(path).names


@pytest.mark.parametrize(
    ("reward", "names"),
    [
        (lambda group, member: 0.0, {"all_wrong"}),
        (lambda group, member: 1.0, {"all_right"}),
        (lambda group, member: float(member % 2), set()),
        (lambda group, member: float(group % 2), {"few_signals"}),
        (lambda group, member: -1.0, {"all_wrong"}),
        (lambda group, member: 0.12, {"reward_constant"}),
        (lambda group, member: 0.12 + 0.1 * group, {"few_signals"}),
    ],
)
@pytest.mark.parametrize("numbered", [True, False])
def test_a_reward_that_stays_flat_is_named_from_episodes_in_groups_by_number_or_prompt(
    tmp_path: Path, reward: Any, names: set[str], numbered: bool
) -> None:
    path = lines(
        tmp_path / "log.jsonl",
        *(
            {"step": step, "prompt": f"{group} + {step}", "completion": f"{member}", "reward": reward(group, member)}
            | ({"group": group} if numbered else {})
            for step in range(1, 13)
            for group in range(4)
            for member in range(4)
        ),
    )
    record = read_foreign(path)
    assert [one.group for one in record.steps[0].episodes] == [group for group in range(4) for _ in range(4)]
    assert set(diagnose(path).names) == names


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"loss": 1.0}, "expected a JSON object with a whole number 'step'"),
        ({"step": 1, "prompt": "a", "completion": "b"}, "an episode needs a number under the key 'reward'"),
        ({"step": 1, "prompt": "a", "reward": 1.0}, "needs 'messages', or 'prompt' and 'completion'"),
        ({"step": 1, "metrics": [1]}, "the field 'metrics' must be a JSON object"),
        ([1], "expected a JSON object"),
    ],
)
def test_a_line_of_another_form_is_refused_with_its_number(tmp_path: Path, line: Any, says: str) -> None:
    path = lines(tmp_path / "log.jsonl", {"step": 1, "loss": 0.1}, line)
    with pytest.raises(RecordFormatError, match=f"line 2.*{says}"):
        read_foreign(path)


def test_equal_rewards_that_may_mean_anything_are_not_called_right(tmp_path: Path) -> None:
    line = {"step": 1, "prompt": "p", "completion": "c", "score": 0.12}
    unknown = read_foreign(lines(tmp_path / "a.jsonl", line))
    assert unknown.steps[0].episodes[0].correct is None
    assert "rollout/pass_rate" not in unknown.steps[0].figures
    known = read_foreign(lines(tmp_path / "b.jsonl", line | {"correct": True}))
    assert known.steps[0].episodes[0].correct is True


def test_no_remedy_for_another_trainers_log_is_a_command_of_this_package(tmp_path: Path) -> None:
    wrong = [{"step": step, "prompt": "p", "completion": "c", "score": 0.0} for step in range(1, 5)]
    (found,) = diagnose(lines(tmp_path / "log.jsonl", *wrong)).findings
    assert found.check == "all_wrong"
    assert found.change == ("train_dataset=EASIER (TRL)", "data.train_files=EASIER (verl)")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"loss": 0.5}\n', "line 1: expected a JSON object with a whole number 'step'"),
        ("step 1: loss 0.5\n", "line 1 is not valid JSON"),
        ("", "does not contain a step"),
    ],
)
def test_an_error_in_a_log_of_another_trainer_names_no_command_of_this_package(
    tmp_path: Path, text: str, says: str
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(text)
    with pytest.raises(RecordFormatError, match=says) as raised:
        diagnose(path)
    assert "rstar2 " not in str(raised.value)


def test_a_compressed_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"step": 1, "loss": 0.5}\n'))
    assert read_foreign(path).series("loss") == [(1, 0.5)]


def test_a_gradient_of_zero_without_a_group_with_a_signal_is_no_fault_of_its_own(tmp_path: Path) -> None:
    flat = [
        {"step": step, "reward": 0.5, "frac_reward_zero_std": 1.0, "grad_norm": 0.0, "loss": 0.0}
        for step in range(1, 16)
    ]
    assert diagnose(lines(tmp_path / "log.jsonl", *flat)).names == ["few_signals"]


def test_what_a_log_does_not_record_is_not_claimed(tmp_path: Path) -> None:
    (found,) = diagnose(lines(tmp_path / "log.jsonl", *({"step": step, "grad_norm": 0.0} for step in range(1, 9))))
    assert found.check == "gradient_zero"
    assert "not recorded whether a group had a signal" in found.says


def test_greedy_sampling_of_another_trainer_is_named_with_its_option(tmp_path: Path) -> None:
    greedy = [
        {"step": step, "prompt": f"{group}+{step}", "completion": f"It is {group}.", "score": float(group == 1)}
        for step in range(1, 6)
        for group in range(4)
        for _ in range(4)
    ]
    found = diagnose(lines(tmp_path / "log.jsonl", *greedy)).findings[0]
    assert found.check == "episodes_identical"
    assert found.change == ("temperature=1 (TRL)", "actor_rollout_ref.rollout.temperature=1 (verl)")
