"""The table of metrics of a run: name, unit, meaning and healthy range of each metric in ``metrics.jsonl``.

Covered: training, evaluations during training, and cold starts. The healthy range of a metric agrees with the rules
of the checks that read it (``rstar2_env.diagnosis.checks``). Not covered: metrics of an evaluation with several samples
per problem (docs/evaluation-figures.md), and metrics of parts from other packages.
"""

from __future__ import annotations

from rstar2_env.core.episode_metrics import FIGURES, Figure
from rstar2_env.diagnosis.metric_table_steps import STEP_METRICS
from rstar2_env.diagnosis.metrics import Metric


def _everywhere(name: str) -> tuple[str, ...]:
    return tuple(f"{prefix}/{name}" for prefix in ("rollout", "kept", "eval"))


_HEALTHY = {
    "pass_rate": (
        "Rises; in evaluations, it does not fall by more than 0.05. In training, 0.1 to 0.9 on a problem is best: "
        "more than half of its groups of 8 episodes then have right and wrong episodes. The level depends on the "
        "problems."
    ),
    "reward": "Rises together with `eval/pass_rate`. If the reward rises while `eval/pass_rate` falls, the reward is "
    "exploited. The level depends on the problems and on the components of the reward.",
    "tool_error_share": (
        "Falls, to below 0.3. A model that has not learned to use the tool fails in 0.3 to 0.7 of its calls; above "
        "0.9, suspect the tool or the dialect."
    ),
    "tool_error_share_correct": (
        "Falls, with the selector `roc` or a penalty. With plain GRPO, the share stays at about 0.1 to 0.15, "
        "according to rStar2-Agent (arXiv 2508.20722)."
    ),
    "tool_calls": (
        "Above 0 if the problems need the tool; a fall to less than 0.05 of the level at the start is a warning. The "
        "level depends on the problems."
    ),
    "code_share": (
        "Near 1 if the problems need the tool; near 0, the policy does not use the tool. The level depends on the "
        "problems."
    ),
    "code_share_correct": "Not below `eval/code_share`: otherwise, episodes with a tool call are right less often than "
    "episodes without a call.",
    "turns": (
        "1 without a tool call, more with calls, and below the environment's limit (`max_turns`): near this limit, "
        "see `rollout/end/turns`."
    ),
    "broken_format": "Falls to 0.",
    "truncated": "Near 0. Above 0.25 for one budget, this budget cuts too many answers.",
    "repetition": "0.05 to 0.2 in ordinary solutions with code, at most 0.4.",
    "tokens": (
        "Above 0 and below `rollout.max_episode_tokens`. Not less than a third of the length at the start, and not "
        "more than 3 times this length, unless the pass rate rises."
    ),
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
    return Metric(names, figure.unit, figure.meaning, _HEALTHY[name], checks)


_UNCOUNTED = (
    "Unavailable and cancelled episodes are excluded from the other metrics of episodes, except the shares of all "
    "played episodes: `unavailable`, `cancelled`, `end/NAME` and `dropped/REASON`."
)


METRICS: dict[str, tuple[Metric, ...]] = {
    "Episodes": (
        *(_of_episodes(name, figure) for name, figure in FIGURES.items()),
        Metric(
            ("eval/pass_rate_se",),
            "share",
            "Standard error of `eval/pass_rate`; episodes of one problem count as dependent.",
            "At most about 0.5 divided by the square root of the number of held-out problems: 0.05 with 100 problems. "
            "A difference between two evaluations of less than 2 or 3 standard errors may be chance.",
        ),
        Metric(
            _everywhere("reward/COMPONENT"),
            "reward",
            "Mean score of a component of the reward, over the episodes that have it.",
            "Varies between episodes: a component that is constant changes no comparison within a group. The level "
            "depends on the scale of the component.",
            ("judge_constant",),
        ),
        Metric(
            _everywhere("status/NAME"),
            "share",
            "Share of the policy's calls that have the status NAME.",
            "`ok`: the rest of the calls. Any other status: at most 0.5, falling to 0; `empty` is not an error.",
            ("status_dominates",),
        ),
        Metric(
            _everywhere("end/NAME"),
            "share",
            "Share of the played episodes that have the end NAME.",
            "`answered` (or `terminated`): near 1. `no_answer`: near 0. `tokens`, `turns` and `time`: near 0; above "
            "0.25, that budget cuts too many answers. `unavailable`: 0. `cancelled`: see `rollout/cancelled`.",
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
            "0 in `kept/` and `eval/`. In `rollout/`, with `rollout.early_stop` and the selector `all` or `roc`, at "
            "most 1 - 1 / `rollout.oversample`; with `rollout.tail=drop` alone, about `spare_groups` / (1 + "
            "`spare_groups`) or less; otherwise 0.",
        ),
        Metric(
            _everywhere("episodes"),
            "episodes",
            "Number of a step's episodes, without episodes that are unavailable or cancelled, or in which a reply "
            "could not be used as a turn.",
            "For `rollout/episodes`, the number that the options set; fewer if some episodes are unavailable, "
            "cancelled or not playable, more with `rollout.refill`.",
        ),
    ),
    "Groups": (
        Metric(
            ("groups/signal",),
            "groups",
            "Number of a step's groups with a signal (an advantage other than 0).",
            "At least 30 % of the groups of a step; below 20 %, most of the time of the rollouts is wasted.",
        ),
        Metric(
            ("groups/none_correct",),
            "groups",
            "Number of a step's groups that have no signal because none of their episodes is correct.",
            "Falls as the policy learns; below 70 % of the groups of a step.",
        ),
        Metric(
            ("groups/all_correct",),
            "groups",
            "Number of a step's groups that have no signal because all of their episodes are correct.",
            "Rises as the policy learns; above 70 % of the groups of a step, choose harder problems.",
        ),
        Metric(
            ("groups/unavailable",),
            "groups",
            "Number of a step's groups that have no signal because none of their episodes is available.",
            "0.",
        ),
        Metric(
            ("groups/not_selected",),
            "groups",
            "Number of a step's groups that have correct and wrong episodes, but no signal: the selector rejects the "
            "group, or the kept episodes have equal rewards.",
            "0 with the selector `roc` if the reward distinguishes right and wrong answers; otherwise few: a group "
            "with right and wrong episodes should have a signal.",
        ),
        Metric(
            ("kept/advantage",),
            "advantage",
            "Mean absolute advantage of the kept episodes.",
            "Above 0; at 0, nothing is learned. With `group_norm` and rewards of 0 and 1, below 1; otherwise, the "
            "level depends on the advantage part and on the scale of the reward.",
        ),
        Metric(
            ("dropped/REASON",),
            "share",
            "Share of the played episodes that are not trained on for the reason REASON.",
            "All reasons together: 1 - 1 / `rollout.oversample` if all groups are used, more if some are rejected. "
            "`unavailable`: 0.",
        ),
        Metric(
            ("rollout/groups_rejected",),
            "share",
            "Share of groups without a training row.",
            "At most 0.7 if the selector rejects all groups without a signal (see `groups/signal`); 0 if it rejects "
            "no group.",
        ),
        Metric(
            ("rollout/groups_refilled",),
            "groups",
            "Number of groups that a step played to replace rejected groups (`rollout.refill`).",
            "0 without `rollout.refill`; otherwise the fewer, the better, and about `rollout.refill` times "
            "`problems_per_step` at most.",
        ),
        Metric(
            ("rollout/groups_replaced",),
            "groups",
            "Number of copied groups that replace rejected groups of a step.",
            "0 without `rollout.replace`; otherwise the fewer, the better, and at most (1 - `rollout.replace`) times "
            "`problems_per_step`.",
        ),
        Metric(
            ("rollout/groups_missing",),
            "groups",
            "Number of groups that are still missing in a step after all refills and copies of groups.",
            "0 is best. Each missing group makes the batch of the step smaller; more rounds of `rollout.refill` find "
            "more groups.",
        ),
        Metric(
            ("rollout/groups_carried",),
            "groups",
            "Number of unfinished groups that a step carries over to the next step.",
            "0 unless `rollout.tail=carry`; then about `rollout.spare_groups` times `problems_per_step` at most.",
        ),
    ),
    "Sampler": (
        Metric(
            ("sampler/share/KIND",),
            "share",
            "Probability of each kind of problem in the step.",
            "The shares of all kinds add up to 1. `stages` and `curriculum` draw from one kind, whose share is 1. With "
            "other samplers, a share depends on the recent results of the kind.",
        ),
        Metric(("sampler/level",), "number", "Level of the curriculum, counted from 1.", "Rises as the policy learns."),
        Metric(
            ("sampler/stage",),
            "number",
            "Stage of the sampler, counted from 1; 0 while it measures the pass rates of problems.",
            "Rises during the run.",
        ),
        Metric(
            ("sampler/problems",),
            "problems",
            "Number of problems from which the sampler draws.",
            "Falls during a run with the sampler `hard_focus` or `unsolved`; rises from stage to stage with the "
            "sampler `potential`. Below `problems_per_step`, "
            "a step repeats problems.",
        ),
        *(
            Metric(
                (f"sampler/{pool}",),
                "problems",
                f"Number of problems in the pool `{pool}` of `difficulty_pool`.",
                change,
            )
            for pool, change in (
                ("hard", "Rises while problems are measured (`sampler/unseen`), then falls as the policy learns."),
                ("normal", "Above 0: problems of this pool have the clearest signal."),
                ("easy", "Rises as the policy learns."),
            )
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
            "Rises as the policy learns. `rollout/pass_rate` differs from `sampler/expected`: the sampler draws "
            "problems whose predicted pass rate is near its option `target`.",
        ),
    ),
    **STEP_METRICS,
}
"""Every metric, grouped by the part of a run that it describes, such as the engine."""


def metric_of(name: str) -> Metric | None:
    """Return the metric with the given name in ``metrics.jsonl``; ``None`` for an unknown one."""
    return next((metric for group in METRICS.values() for metric in group if metric.matches(name)), None)
