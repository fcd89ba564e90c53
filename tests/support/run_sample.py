"""A small run as training writes it: its groups, what became of them, and its folder."""

from __future__ import annotations

from pathlib import Path

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.run_folder import Decision, RunWriter, TokensEntry
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn

CONFIG = {"trainer": "grpo_roc", "run": {"seed": 0, "steps": 4}, "parts": {"selector": ["roc", {"mode": "rank"}]}}


def episode(group: int, member: int, step: int) -> Episode:
    """One with two turns, a call and something that no other episode says."""
    said = f"é step {step} group {group} member {member}"
    return Episode(
        group=group,
        seed=100 * step + group,
        problem_id=f"p{group}",
        messages=[
            Message("user", "What?"),
            Message("assistant", said),
            Message("user", "7"),
            Message("assistant", "so"),
        ],
        prompt_ids=[1, 2],
        completion_ids=[3, 4, 5, 6],
        mask=[1, 1, 0, 1],
        logprobs=[-0.5, -1.0, 0.0, -0.25],
        reward=float(member % 2),
        end="answered",
        turns=2,
        statuses=[ToolStatus.OK],
        steps=[
            Turn(0, 2, "What?", statuses=[ToolStatus.OK], version=step - 1, info={"tool_calls": [{"status": "ok"}]}),
            Turn(3, 4, "7", float(member % 2), version=step - 1),
        ],
        rewards={"return": float(member % 2)},
        task="sums",
    )


def groups_of(step: int, *, first: int = 0, count: int = 2, size: int = 3) -> list[list[Episode]]:
    return [[episode(group, member, step) for member in range(size)] for group in range(first, first + count)]


def decisions_of(groups: list[list[Episode]], round: int = 0) -> list[list[Decision]]:
    """The first of each group is dropped for the quota, the others train."""
    kept = [Decision(True, round=round, advantage=0.5)] * 9
    return [[Decision(False, "quota", round), *kept[1 : len(group)]] for group in groups]


def write_step(writer: RunWriter, step: int) -> None:
    """A step as training writes it: episodes, one round of refill, tokens, metrics."""
    first, more = groups_of(step), groups_of(step, first=2, count=1)
    writer.train(step, first + more, decisions_of(first) + decisions_of(more, round=1))
    played = first[0][1]
    writer.tokens(
        [
            TokensEntry(
                step,
                0,
                1,
                played.prompt_ids,
                played.completion_ids,
                played.mask,
                played.logprobs,
                [0.5] * 4,
                [1.0, 1.1, 1.0, 0.9],
            )
        ]
    )
    writer.metrics(step, {"loss": 1.0 / step, "kl": float("nan")})


def write_run(folder: Path, steps: int = 4) -> RunWriter:
    """A run of some steps, evaluated before the first and after the last, with a checkpoint at step 2."""
    writer = RunWriter(folder, tokens=True)
    writer.begin(CONFIG)
    writer.held_out(0, [episode(number, 0, 99) for number in range(3)])
    writer.event("evaluation", 0, figures={"pass_rate": 0.25, "tool_error_share": None})
    for step in range(1, steps + 1):
        write_step(writer, step)
        if step == 2:
            (folder / "checkpoint-2").mkdir(exist_ok=True)
            writer.event("checkpoint", 2, path="checkpoint-2", sampler="checkpoint-2/sampler.json")
    writer.held_out(steps, [episode(number, 0, 98) for number in range(3)])
    writer.event("evaluation", steps, figures={"pass_rate": 0.75})
    writer.event("finished", steps)
    return writer
