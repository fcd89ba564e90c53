"""The metrics of optimizer steps, of the engine and of the machine; part of ``rstar2_env.diagnosis.metric_table``."""

from __future__ import annotations

from rstar2_env.diagnosis.metrics import Metric

_LENGTHS = "No general range: it depends on the number and the lengths of the episodes."
_CLIP = (
    "0 with one update for each rollout. With several updates and ratios of tokens, the shares of both bounds together "
    "are usually 0.001 to 0.02, at most 0.5; with ratios of turns or sequences and bounds of about 3e-4, they are "
    "usually 0.6 to 0.85, at most 0.95."
)


def _by_depth(name: str) -> tuple[str, ...]:
    return f"mismatch/{name}", f"mismatch/{name}/DEPTH"


STEP_METRICS: dict[str, tuple[Metric, ...]] = {
    "Optimizer": (
        Metric(
            ("loss",),
            "nats in a cold start, otherwise the advantage's unit",
            "Loss of the optimizer's step; in a cold start, the mean cross-entropy of a token.",
            "Finite. A policy-gradient loss has no preferred direction: with centred advantages it stays near 0 in a "
            "run that learns. In a cold start, lower is better.",
        ),
        Metric(
            ("grad_norm",),
            "gradient",
            "Norm of the gradient before `optim.max_grad_norm` bounds it.",
            "Finite, and above 0 in steps that train on rows with an advantage; at most 10 times "
            "`optim.max_grad_norm`. A norm of a few times `optim.max_grad_norm` is common and harmless.",
        ),
        Metric(
            ("learning_rate",),
            "none",
            "Learning rate that the schedule sets for the step.",
            "In reinforcement learning, about 1e-5 for 135 million parameters, falling to 1e-6 for 7 billion and "
            "more; in a cold start, 3e-4 to 2e-5; ten times as much for LoRA. `weights/change` does not depend on the "
            "model's size.",
        ),
        Metric(
            ("weights/change",),
            "ratio",
            "Norm of a step's change of the weights, divided by the norm of the weights; both are estimated from a "
            "sample of the weights.",
            "1e-7 to 1e-2 in steps that train on rows with an advantage, after the warm-up.",
        ),
        Metric(
            ("optimizer/updates",),
            "updates",
            "Number of updates in the optimizer's state, if it counts them: the lowest count among the sampled "
            "weights.",
            "Rises, and continues after a resume; 0 only after a reset of the optimizer (`reference_reset`, "
            "`policy_refresh`).",
        ),
        Metric(
            ("optimizer/second_moment",),
            "none",
            "Mean of the optimizer's second moments (Adam's `exp_avg_sq`), estimated from a sample.",
            "Above 0 after the first update, and at least half as large after a resume as before it. The level "
            "depends on the size of the gradients.",
        ),
        Metric(
            ("mask/environment",),
            "share",
            "Share of the environment's tokens that have mask 1, in the trained rows.",
            "0.",
        ),
        Metric(
            ("mask/turn_ends",),
            "share",
            "Among the last turns of episodes that the policy ended itself, the share whose last token is an "
            "end-of-turn token with mask 1.",
            "1. Below 0.75, the policy forgets to end its turns.",
        ),
        Metric(
            ("epoch",),
            "passes",
            "Number of passes over the traces of a cold start.",
            "Rises to the number of passes that the options set.",
        ),
    ),
    "Policy": (
        Metric(
            ("policy/ratio",),
            "ratio",
            "Mean ratio of a token's current probability to its probability before the first update on its rollout.",
            "1 with one update for each rollout. With several updates, near 1: a mean far from 1 comes from a few "
            "tokens whose probability changed much (see `clip/low` and `clip/high`).",
        ),
        Metric(
            ("policy/entropy",),
            "nats",
            "Mean entropy of the distribution of a token.",
            "0.1 to 0.8 in text of trained models. Below 0.05, it is a fault; so is an entropy above 1 nat that is "
            "more than 3 times its level at the start.",
        ),
        Metric(
            ("policy/lag",),
            "updates",
            "Mean number of updates between sampling a turn and training on it.",
            "0 with one update for each rollout, `rollout.max_staleness=0`, and no groups that are carried over; "
            "otherwise at most the lag that the options allow.",
        ),
    ),
    "Engine against trainer": (
        Metric(
            _by_depth("logp_difference"),
            "nats",
            "Mean of abs(log π_old - log μ); π_old is the trainer's probability of a sampled token, μ the engine's.",
            "1e-6 to 1e-4 in float32 and 0.01 to 0.03 in bfloat16; at most `mismatch/explained`. The difference does "
            "not rise if all turns are sampled with the newest weights.",
        ),
        Metric(
            _by_depth("kl"),
            "nats",
            "KL(μ, π_old), estimated by k3.",
            "0 if engine and trainer compute the same probabilities; otherwise about half of the mean squared "
            "difference of the log-probabilities, far below `mismatch/logp_difference`.",
        ),
        Metric(
            _by_depth("chi2"),
            "ratio",
            "Chi-squared divergence: mean of (π_old / μ)² - 1.",
            "0 if engine and trainer compute the same probabilities; otherwise about twice `mismatch/kl`.",
        ),
        Metric(
            _by_depth("ess"),
            "share",
            "Effective sample size as a share of the tokens, (Σc)² / (n Σc²); c is the correction's weight of a token.",
            "1 if engine and trainer compute the same probabilities; otherwise near 1. At 0.9, a weighted mean over "
            "the tokens is as precise as an unweighted mean over 90 % of them.",
        ),
        Metric(
            _by_depth("weight"),
            "ratio",
            "Mean weight c of the correction.",
            "1 with the correction `none`; otherwise near 1, and below 1 by the share of weight that the correction "
            "cuts or drops.",
        ),
        Metric(
            _by_depth("masked"),
            "share",
            "Share of tokens whose weight in the correction is 0.",
            "0 with the corrections `none` and `truncate`. Near 0 with other corrections: tokens with weight 0 are "
            "not trained on.",
        ),
        Metric(
            ("mismatch/explained",),
            "nats",
            "Largest `mismatch/logp_difference` that the run's precision explains: 0.0005 in float32, 0.03 in float16, "
            "0.1 in bfloat16.",
            "Constant: it depends only on the precision.",
        ),
    ),
    "Terms of the loss": (
        Metric(
            ("clip/low",),
            "share",
            "Share of the policy's tokens whose gradient the lower bound of the ratio removes or, for `cispo`, whose "
            "weight is raised to that bound.",
            _CLIP,
        ),
        Metric(
            ("clip/high",),
            "share",
            "Share of the policy's tokens whose gradient the upper bound of the ratio removes or, for `cispo`, whose "
            "weight is lowered to that bound.",
            _CLIP,
        ),
        Metric(
            ("clip/outer",),
            "share",
            "Share of tokens whose gradient the outer bound of `ppo_clip` removes (`two_sided`, `dual`).",
            "0 with one update for each rollout; otherwise near 0, since the bound is meant for tokens with extreme "
            "ratios.",
        ),
        Metric(
            ("clip/dropped",),
            "share",
            "Share of tokens that `clip_cov`, `dppo`, `m2po` or `rollout_is` excludes.",
            "`clip_cov`: at most about its option `share`. `dppo`, `m2po` and `rollout_is`: 0 while the policy and the "
            "sampling weights agree, otherwise small, since dropped tokens are not trained on.",
        ),
        Metric(
            ("sapo/gate",),
            "ratio",
            "Mean weight of a token in `sapo`, relative to the plain policy gradient.",
            "1 with one update for each rollout; with several updates, below 1, and the lower, the farther the ratios "
            "are from 1.",
        ),
        Metric(
            ("vespo/weight",),
            "ratio",
            "Mean weight that `vespo` derives from the ratios.",
            "1 while the policy equals the weights that sampled the rows; near 0 if the rows are too old to learn "
            "from.",
        ),
        Metric(
            ("fipo/weight",),
            "ratio",
            "Mean weight that `fipo` derives from the ratios.",
            "1 with one update for each rollout; otherwise from 1 - `below` to 1 + `above`, the options of the term "
            "(0.8 to 1.2).",
        ),
        Metric(
            ("topr/negative_weight",),
            "ratio",
            "Mean weight that `topr` gives to the tokens with a negative advantage.",
            "From 0 to 1: 1 while wrong episodes are as probable as when they were sampled, falling as they are "
            "unlearned.",
        ),
        Metric(
            ("kl_cov/distance",),
            "nats",
            "Mean of abs(log π - log π_old) over the tokens that `kl_cov` penalizes.",
            "0 with one update for each rollout; otherwise small, since the term penalizes it. The level depends on "
            "the option `coef`.",
        ),
        Metric(
            ("gvpo/distance",),
            "reward",
            "Mean absolute difference between the implied reward (beta times a row's log-ratio, less the group's mean) "
            "and the advantage.",
            "The mean absolute advantage in the first update on a rollout; smaller in each further update.",
        ),
        Metric(
            ("kl",),
            "nats",
            "KL(π, π_ref) of a token, estimated by k3, whatever estimator the term uses.",
            "0 at the start; below 0.1 in runs that keep their abilities. The divergence rises, then stays level.",
        ),
        Metric(
            ("teacher_kl",),
            "nats",
            "KL(π, π_teacher) of a token, estimated by k3, for `opd` and `kdrl`.",
            "Falls towards 0, at which the policy equals the teacher. The level at the start depends on policy and "
            "teacher.",
        ),
        Metric(
            ("entropy",),
            "nats",
            "Mean entropy of a token (term `entropy` or `adaptive_entropy`).",
            "As for `policy/entropy`. With `adaptive_entropy`, near its option `target`, or above it.",
        ),
        Metric(
            ("entropy_coef",), "none", "Coefficient of `adaptive_entropy`.", "From 0 to the option `most` of the term."
        ),
        Metric(
            ("sft",),
            "nats",
            "Mean cross-entropy of a token in rows that an expert wrote (term `sft`).",
            "Falls. The level depends on the text.",
        ),
        Metric(
            ("echo",),
            "nats",
            "Mean cross-entropy of a token in the outputs of tools (term `echo`).",
            "Falls. The level depends on the text of the tools.",
        ),
        Metric(
            ("external",),
            "share",
            "Share of tokens from external data in the loss `rl_plus`.",
            "0 without rows of an expert; otherwise constant, unless lengths change.",
        ),
    ),
    "Tokens and time": (
        Metric(
            ("tokens/computed",),
            "tokens",
            "Number of tokens of a step's passes with a gradient, padding included.",
            _LENGTHS,
        ),
        Metric(
            ("tokens/trained",),
            "tokens",
            "Number of tokens in those rows of a step that have an advantage.",
            "Above 0; at 0, nothing is learned. The level depends on the number and the lengths of the episodes.",
        ),
        Metric(
            ("tokens/no_grad",),
            "tokens",
            "Number of tokens of a step's passes without a gradient: those of the reference model and, if needed, "
            "those that compute old probabilities.",
            "0 if the loss needs neither a reference model nor a teacher nor old probabilities; otherwise, about "
            "`tokens/computed` for each of these passes that is needed, once per rollout.",
        ),
        Metric(
            ("tokens/share_trained",),
            "share",
            "`tokens/trained` divided by `tokens/computed`; above 1 if rows share prefixes.",
            "0.9 to 1 without shared prefixes, more with them. Less if many rows have no advantage, or if a process "
            "has few rows of very different lengths.",
        ),
        Metric(
            ("seconds/rollout",),
            "seconds",
            "Time of a step's rollout.",
            "Constant, unless lengths change. If other devices train meanwhile, ideally equal to `seconds/train`. The "
            "level depends on the model, the machine and the lengths of episodes.",
            ("throughput_falls",),
        ),
        Metric(
            ("seconds/reward",),
            "seconds",
            "Time of computing rewards after the rollout.",
            "Near 0, unless a component of the reward asks a judge, computes probabilities or plays further episodes.",
        ),
        Metric(
            ("seconds/select",),
            "seconds",
            "Time of the selector.",
            "Near 0. With several processes, it may contain the wait for slower ones.",
        ),
        Metric(
            ("seconds/advantage",),
            "seconds",
            "Time of computing advantages.",
            "Near 0, unless the advantage needs passes of the model. With several processes, it may contain the wait "
            "for slower ones.",
        ),
        Metric(
            ("seconds/hand_over",),
            "seconds",
            "Time of the weight sync to the engine.",
            "Near 0 with `engine=transformers`, which shares the weights. With other engines constant, and small "
            "compared with `seconds/train`; the level depends on the size of the model and on the transport.",
        ),
        Metric(
            ("seconds/train",),
            "seconds",
            "Time of a step's passes with a gradient.",
            "Proportional to `tokens/computed`. If other devices play the next rollout meanwhile, ideally equal to "
            "`seconds/rollout`.",
        ),
        Metric(
            ("seconds/wait",),
            "seconds",
            "Time that a step waits for a prefetched rollout.",
            "Near 0 if the rollout takes less time than the training; otherwise about the difference between the two.",
        ),
        Metric(
            ("seconds/share_waiting",),
            "share",
            "Mean wait of a process for the slowest one, as a share of the rollout's time.",
            "Usually 0.05 to 0.2, from uneven lengths of episodes alone; at most 0.28.",
        ),
        Metric(
            ("rollout/slowest_process",),
            "number",
            "Rank of the process whose rollout took the longest; only in runs of several processes.",
            "Changes from step to step; always the same rank if one process is slow.",
        ),
        Metric(
            ("seconds/offload",),
            "seconds",
            "Time of moving the optimizer's state (`optim.offload_state`): to host memory, as a part of "
            "`seconds/hand_over`, and back before training.",
            "Constant, and small compared with `seconds/rollout`.",
        ),
        Metric(
            ("seconds/tool",),
            "seconds",
            "Mean time that an episode spends in the environment.",
            "Constant: the run time of the programs, plus milliseconds per call. If it doubles, calls wait in the "
            "queue of the sandbox.",
        ),
        Metric(
            ("seconds/engine_wait",),
            "seconds",
            "Mean time that an episode waits for the engine.",
            "Constant, unless lengths change. If it doubles, a server is slow or missing, or the cache is full.",
        ),
        Metric(
            ("speed/train_tokens_per_second",),
            "tokens per second",
            "Tokens trained on per second, over all processes; in a cold start, in the first process only.",
            "Constant, unless lengths change. The level depends on the model and the machine.",
        ),
        Metric(
            ("speed/generated_tokens_per_second",),
            "tokens per second",
            "Number of tokens that the engines generate per second of the rollout, over all processes.",
            "At least 55 % of the speed at the start. The level depends on the model and the machine.",
        ),
        Metric(
            ("speed/mfu",),
            "share",
            "Operations of the model per second, as a share of the device's peak, if the peak is known.",
            "At most about 0.5, the value fitted to published training on H100 (docs/step-costs.md); lower if a pass "
            "has few tokens.",
        ),
    ),
    "Engine and memory": (
        Metric(
            ("engine/generated_tokens",),
            "tokens",
            "Number of tokens that the engine generates in a rollout, if the engine reports them.",
            "About `rollout/tokens` times the number of played episodes; much more if unfinished turns are discarded.",
        ),
        Metric(
            ("engine/cached_share",),
            "share",
            "Share of prompt tokens found in the engine's cache.",
            "Near 1 if episodes have several turns, or groups share their prompts; if it falls, the cache is too "
            "small.",
        ),
        Metric(
            ("engine/preemptions",),
            "sequences",
            "Number of sequences that the engine interrupts in a rollout because its cache is full.",
            "0, or few compared with `rollout/episodes`.",
        ),
        Metric(
            ("engine/recomputed_tokens",),
            "tokens",
            "Number of tokens of interrupted sequences that the engine computes again.",
            "0, or few compared with `engine/generated_tokens`.",
        ),
        Metric(
            ("engine/in_flight",),
            "episodes",
            "Limit on concurrent episodes that `adaptive_in_flight` has chosen.",
            "From 1 to `rollout.max_in_flight` for each process; it settles where the caches are 75 to 95 % full.",
        ),
        Metric(("memory/process_gib",), "GiB", "Mean resident memory of a process.", "Constant after the first steps."),
        Metric(
            ("memory/peak_gib",),
            "GiB",
            "Peak memory of the device, or of the process on a CPU, in a cold start.",
            "Below the memory of the machine.",
        ),
    ),
}
"""The metrics, grouped by the part of a run that they describe, such as the engine."""
