"""The table of metrics of a run: name, unit, meaning and healthy range of each figure in ``metrics.jsonl``.

Covered: training, evaluations during training, and cold starts. The healthy range of a metric follows from the rules of
the checks that read it (``rstar2_env.diagnosis.checks``), or is given in the table. Not covered: figures of an
evaluation with several samples (docs/evaluation-figures.md), and metrics of parts that other distributions provide.
"""

from __future__ import annotations

from rstar2_env.core.episode_metrics import FIGURES, Figure
from rstar2_env.diagnosis.metric_table_steps import STEP_METRICS
from rstar2_env.diagnosis.metrics import Metric


def _everywhere(name: str) -> tuple[str, ...]:
    return tuple(f"{prefix}/{name}" for prefix in ("rollout", "kept", "eval"))


_DIRECTIONS = {
    "higher": "Higher is better. No general range: the level depends on the problems and on the policy.",
    "lower": "Lower is better. No general range: the level depends on the problems and on the policy.",
    "": "No general range: the level depends on the problems and on the policy.",
}
_READ_FROM_EPISODES = {
    "pass_rate": ("held_out_falls", "reward_exploited"),
    "tool_error_share": ("tool_fails",),
    "repetition": ("repetition",),
    "truncated": ("cut_by_time", "cut_by_tokens", "cut_by_turns"),
}


def _of_episodes(name: str, figure: Figure) -> Metric:
    names = _everywhere(name) if figure.each_step else (f"eval/{name}",)
    checks = _READ_FROM_EPISODES.get(name, ())
    return Metric(names, figure.unit, figure.meaning, _DIRECTIONS[figure.better], checks)


_UNCOUNTED = (
    "Such episodes are excluded from the other metrics of episodes, except the shares of all played episodes: "
    "`unavailable`, `cancelled`, `end/NAME` and `dropped/REASON`."
)
_PROBLEMS = "No general range: the value depends on the options of the sampler and on the problems."


METRICS: dict[str, tuple[Metric, ...]] = {
    "Episodes": (
        *(_of_episodes(name, figure) for name, figure in FIGURES.items()),
        Metric(
            ("eval/pass_rate_se",),
            "share",
            "Standard error of `eval/pass_rate`; episodes of one problem count as dependent.",
            "No general range: it falls with the square root of the number of held-out problems.",
        ),
        Metric(
            _everywhere("reward/COMPONENT"),
            "reward",
            "Mean score of a component of the reward, over the episodes that have it.",
            "No general range: each component has its own scale.",
            ("judge_constant",),
        ),
        Metric(
            _everywhere("status/NAME"),
            "share",
            "Share of the policy's calls that have the status in the name.",
            "No general range for one status. `ok` and `empty` do not count as errors.",
            ("status_dominates",),
        ),
        Metric(
            _everywhere("end/NAME"),
            "share",
            "Share of the played episodes that have the end in the name.",
            "No general range for one end, except the ranges that the checks use.",
        ),
        Metric(
            _everywhere("unavailable"),
            "share",
            f"Share of episodes that failed for reasons outside the policy. {_UNCOUNTED}",
            "0.",
            ("sandbox_unavailable", "all_unavailable"),
        ),
        Metric(
            _everywhere("cancelled"),
            "share",
            "Share of episodes that were cancelled because their group (`rollout.early_stop`) or their step "
            f"(`rollout.tail=drop`) no longer needed them. {_UNCOUNTED}",
            "0 without `rollout.early_stop` and `rollout.tail=drop`; otherwise no general range: it depends on "
            "the spread of lengths.",
        ),
        Metric(
            _everywhere("episodes"),
            "episodes",
            "Number of a step's episodes, without episodes that are unavailable or cancelled, or in which a reply "
            "could not be played as a turn.",
            "For `rollout/episodes`, the number that the options set; fewer if some episodes are unavailable, "
            "cancelled or not playable, more with `rollout.refill`.",
        ),
    ),
    "Groups": (
        Metric(("groups/signal",), "groups", "Number of a step's groups with a signal (an advantage other than 0)."),
        Metric(
            ("groups/none_correct",),
            "groups",
            "Number of a step's groups that have no signal because none of their episodes is correct.",
        ),
        Metric(
            ("groups/all_correct",),
            "groups",
            "Number of a step's groups that have no signal because all of their episodes are correct.",
        ),
        Metric(
            ("groups/unavailable",),
            "groups",
            "Number of a step's groups that have no signal because none of their episodes is available.",
        ),
        Metric(
            ("groups/not_selected",),
            "groups",
            "Number of a step's groups that have correct and wrong episodes, but no signal: the selector rejects the "
            "group, or the kept episodes have equal rewards.",
        ),
        Metric(
            ("kept/advantage",),
            "advantage",
            "Mean absolute advantage of the kept episodes.",
            "Above 0; at 0, nothing is learned. No general upper limit: each advantage part has its own scale.",
        ),
        Metric(
            ("dropped/REASON",),
            "share",
            "Share of the played episodes that are not trained on for the reason in the name.",
            "No general range: the options of a selector set the share that it drops, such as half of the episodes.",
        ),
        Metric(
            ("rollout/groups_rejected",),
            "share",
            "Share of groups without a training row.",
            "No general range: the checks judge `groups/signal` instead.",
        ),
        Metric(
            ("rollout/groups_refilled",),
            "groups",
            "Number of groups that a step played to replace rejected groups (`rollout.refill`).",
            "0 without `rollout.refill`; otherwise no general range: it depends on the number of rejected groups.",
        ),
        Metric(
            ("rollout/groups_replaced",),
            "groups",
            "Number of copied groups that replace rejected groups of a step.",
            "0 without `rollout.replace`; otherwise no general range: it depends on the number of rejected groups.",
        ),
        Metric(
            ("rollout/groups_missing",),
            "groups",
            "Number of groups that are still missing in a step after all refills and copies of groups.",
            "0 if every group is accepted; otherwise no general range: it depends on the rejected groups, "
            "`rollout.refill` and `rollout.replace`.",
        ),
        Metric(
            ("rollout/groups_carried",),
            "groups",
            "Number of unfinished groups that a step carries over to the next step.",
            "0 unless `rollout.tail=carry`; otherwise no general range: it depends on the spread of lengths.",
        ),
    ),
    "Sampler": (
        Metric(("sampler/share/KIND",), "share", "Probability of each kind of problem in the step.", _PROBLEMS),
        Metric(("sampler/level",), "number", "Level of the curriculum, counted from 1.", "Rises as the policy learns."),
        Metric(
            ("sampler/stage",),
            "number",
            "Stage of the sampler, counted from 1; 0 while it measures the pass rates of problems.",
            "Rises during the run.",
        ),
        Metric(("sampler/problems",), "problems", "Number of problems from which the sampler draws.", _PROBLEMS),
        *(
            Metric(
                (f"sampler/{pool}",),
                "problems",
                f"Number of problems in the pool `{pool}` of `difficulty_pool`.",
                _PROBLEMS,
            )
            for pool in ("hard", "normal", "easy")
        ),
        Metric(
            ("sampler/unseen",),
            "problems",
            "Number of problems that `difficulty_pool` has not drawn yet.",
            "Falls to 0.",
        ),
        Metric(
            ("sampler/expected",),
            "share",
            "Mean pass rate that the sampler `mopps` predicts, over all problems.",
            "No general range: the sampler draws problems whose predicted pass rate is near its option `target`, so "
            "`rollout/pass_rate` differs.",
        ),
    ),
    **STEP_METRICS,
}
"""Every metric, by the part of a run that it describes."""


def metric_of(name: str) -> Metric | None:
    """Return the metric with the given name in ``metrics.jsonl``; ``None`` for an unknown one."""
    return next((metric for group in METRICS.values() for metric in group if metric.matches(name)), None)
