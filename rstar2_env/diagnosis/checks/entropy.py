"""Checks for a policy entropy that collapsed or exploded."""

from __future__ import annotations

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.checks.identical import is_cold
from rstar2_env.diagnosis.record import RunRecord
from rstar2_env.diagnosis.spells import rolling, spell, start_level

LOWEST = 0.05
"""Entropy in nats per token. Below this value, a sampled token is the most likely one in about 99 of 100 cases, so that
the episodes of a group hardly differ."""
_TIMES, _LEAST, _WINDOW = 3.0, 1.0, 3
_SMALLEST = 1e-4
"""Smallest entropy that a message states exactly; for a smaller entropy, the message states "below" this value."""


def _collapsed(run: RunRecord) -> Evidence | None:
    points = rolling(run.series("policy/entropy"), _WINDOW)
    found = spell(points, lambda entropy: entropy < LOWEST)
    if found is None:
        return None
    start = start_level(run.series("policy/entropy"))
    fell = start is not None and start >= LOWEST
    from_start = f", after {start:.3g} in the first steps" if fell else "" if start is None else ", as at the start"
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"The entropy of the policy, as a mean of {_WINDOW} steps, is {_written(found.last)} nats a token"
        f"{from_start}; below {LOWEST} the episodes of a group hardly differ.",
        figures={"policy/entropy": found.last, **({} if start is None else {"at the start": start})},
        episodes=run.examples(found.since, found.until, lambda episode: episode.reason == "equal"),
        effects=() if is_cold(run) else None,
    )


def _written(entropy: float) -> str:
    return f"{entropy:.3g}" if entropy >= _SMALLEST else f"below {_SMALLEST:g}"


def _exploded(run: RunRecord) -> Evidence | None:
    start = start_level(run.series("policy/entropy"))
    if start is None:
        return None
    points = rolling(run.series("policy/entropy"), _WINDOW)
    found = spell(points, lambda entropy: entropy > max(_TIMES * start, _LEAST))
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"The entropy of the policy, as a mean of {_WINDOW} steps, is {found.last:.3g} nats a token, "
        f"{found.last / max(start, 1e-9):.1f} times that of the first steps ({start:.3g}).",
        figures={"policy/entropy": found.last, "at the start": start},
        episodes=run.examples(found.since, found.until, lambda episode: episode.available and not episode.correct),
    )


register(
    RunCheck(
        name="entropy_collapsed",
        title="The entropy is too low",
        looks_at="`policy/entropy`, mean of 3 steps",
        rule=f"the entropy is below {LOWEST} nats a token in 3 consecutive means of 3 steps: in 99 of 100 places, the "
        "sampled token is then the most likely one, and sampled episodes hardly differ",
        severity="warning",
        cause="An entropy collapse: after many updates on few problems, or with a clip bound under which only likely "
        "tokens can become more likely.",
        change=(
            "--set loss.ppo_clip.high=0.28",
            "--set loss.entropy.coef=0.001",
            "--set hook.guard.metric=policy/entropy --set hook.guard.low=0.05",
        ),
        otherwise="After a cold start on demonstrations that all answer in one way, the entropy is low from the start; "
        "then the pass rate still rises.",
        needs=("policy/entropy",),
        look=_collapsed,
        effects=("episodes_identical", "repetition"),
    ),
    RunCheck(
        name="entropy_exploded",
        title="The entropy explodes",
        looks_at="`policy/entropy`, mean of 3 steps, against the median of the first 3 steps",
        rule="in 3 consecutive means of 3 steps, the entropy is more than 3 times its level at the start and more than "
        "1 nat a token: text of trained models has an entropy of 0.1 to 0.8 nats a token",
        severity="error",
        cause="An entropy bonus that is too large, a learning rate that is too high, or updates from bad ratios.",
        change=("--set loss.entropy.coef=0", "--set optim.learning_rate=LOWER", "--set loss.ppo_clip.two_sided=4"),
        otherwise="A schedule that raises the temperature: the entropy is measured at the sampling temperature.",
        needs=("policy/entropy",),
        look=_exploded,
        effects=("all_wrong", "cut_by_tokens", "held_out_falls", "template_wrong", "tool_fails"),
    ),
)
