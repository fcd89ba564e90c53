"""The metrics of optimizer steps, of the engine and of the machine; part of ``rstar2_env.diagnosis.metric_table``."""

from __future__ import annotations

from rstar2_env.diagnosis.metrics import Metric

_LENGTHS = "No general range: the value depends on the number and the lengths of the episodes."
_MACHINE = "No general range: the value depends on the model, the machine and the lengths of episodes."
_TEXT = "Lower is better. No general range: the value depends on the text."
_PART = "No general range: the value depends on the options of the term."
_MISMATCH = (
    "{} if engine and trainer compute the same probabilities. Otherwise no general range: it depends on the precision; "
    "the checks judge `mismatch/logp_difference`."
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
        Metric(("grad_norm",), "gradient", "Norm of the gradient before `optim.max_grad_norm` bounds it."),
        Metric(
            ("learning_rate",),
            "none",
            "Learning rate that the schedule sets for the step.",
            "No general range: see `weights/change`, which does not depend on the model's size.",
        ),
        Metric(
            ("weights/change",),
            "ratio",
            "Norm of a step's change of the weights, divided by the norm of the weights; both are estimated from a "
            "sample of the weights.",
        ),
        Metric(
            ("optimizer/updates",),
            "updates",
            "Number of updates in the optimizer's state, if it counts them: the lowest count among the sampled "
            "weights.",
        ),
        Metric(
            ("optimizer/second_moment",),
            "none",
            "Mean of the optimizer's second moments (Adam's `exp_avg_sq`), estimated from a sample.",
            "No general range: it depends on the size of the gradients.",
        ),
        Metric(
            ("mask/environment",),
            "share",
            "Share of the environment's tokens that have mask 1, in the trained rows.",
        ),
        Metric(
            ("mask/turn_ends",),
            "share",
            "Among the last turns of episodes that the policy ended itself, the share whose last token is an "
            "end-of-turn token with mask 1.",
            "1.",
        ),
        Metric(
            ("epoch",),
            "passes",
            "Number of passes over the traces of a cold start.",
            "No general range: it depends on the options.",
        ),
    ),
    "Policy": (
        Metric(
            ("policy/ratio",),
            "ratio",
            "Mean ratio of a token's current probability to its probability before the first update on its rollout.",
            "1 with one update for each rollout. No general range with several updates: the checks judge `clip/low` "
            "and `clip/high`.",
        ),
        Metric(("policy/entropy",), "nats", "Mean entropy of the distribution of a token."),
        Metric(("policy/lag",), "updates", "Mean number of updates between sampling a turn and training on it."),
    ),
    "Engine against trainer": (
        Metric(
            _by_depth("logp_difference"),
            "nats",
            "Mean of abs(log π_old - log μ); π_old is the trainer's probability of a sampled token, μ the engine's.",
        ),
        Metric(_by_depth("kl"), "nats", "KL(μ, π_old), estimated by k3.", _MISMATCH.format(0)),
        Metric(_by_depth("chi2"), "ratio", "Chi-squared divergence: mean of (π_old / μ)² - 1.", _MISMATCH.format(0)),
        Metric(
            _by_depth("ess"),
            "share",
            "Effective sample size as a share of the tokens, (Σc)² / (n Σc²); c is the correction's weight of a token.",
            _MISMATCH.format(1),
        ),
        Metric(_by_depth("weight"), "ratio", "Mean weight c of the correction.", _MISMATCH.format(1)),
        Metric(
            _by_depth("masked"), "share", "Share of tokens whose weight in the correction is 0.", _MISMATCH.format(0)
        ),
        Metric(
            ("mismatch/explained",),
            "nats",
            "Largest `mismatch/logp_difference` that the run's precision explains: 0.0005 in float32, 0.03 in float16, "
            "0.1 in bfloat16.",
        ),
    ),
    "Terms of the loss": (
        Metric(
            ("clip/low",),
            "share",
            "Share of the policy's tokens whose gradient the lower bound of the ratio removes or, for `cispo`, whose "
            "weight is raised to that bound.",
        ),
        Metric(
            ("clip/high",),
            "share",
            "Share of the policy's tokens whose gradient the upper bound of the ratio removes or, for `cispo`, whose "
            "weight is lowered to that bound.",
        ),
        Metric(
            ("clip/outer",),
            "share",
            "Share of tokens whose gradient the outer bound of `ppo_clip` removes (`two_sided`, `dual`).",
            "No general range; the bound is meant to affect only a few tokens, those with extreme ratios.",
        ),
        Metric(
            ("clip/dropped",),
            "share",
            "Share of tokens that `clip_cov`, `dppo`, `m2po` or `rollout_is` excludes.",
            _PART,
        ),
        Metric(
            ("sapo/gate",),
            "ratio",
            "Mean weight of a token in `sapo`, relative to the plain policy gradient.",
            "1 while all ratios are 1. " + _PART,
        ),
        Metric(("vespo/weight",), "ratio", "Mean weight that `vespo` derives from the ratios.", _PART),
        Metric(("fipo/weight",), "ratio", "Mean weight that `fipo` derives from the ratios.", _PART),
        Metric(
            ("topr/negative_weight",),
            "ratio",
            "Mean weight that `topr` gives to the tokens with a negative advantage.",
            _PART,
        ),
        Metric(
            ("kl_cov/distance",),
            "nats",
            "Mean of abs(log π - log π_old) over the tokens that `kl_cov` penalizes.",
            "0 with one update for each rollout. " + _PART,
        ),
        Metric(
            ("gvpo/distance",),
            "reward",
            "Mean absolute difference between the implied reward (beta times a row's log-ratio, less the group's mean) "
            "and the advantage.",
            "Lower is better. " + _PART,
        ),
        Metric(("kl",), "nats", "KL(π, π_ref) of a token, estimated by k3, whatever estimator the term uses."),
        Metric(
            ("teacher_kl",),
            "nats",
            "KL(π, π_teacher) of a token, estimated by k3, for `opd` and `kdrl`.",
            "Falls. No general range: the level depends on teacher and policy.",
        ),
        Metric(
            ("entropy",),
            "nats",
            "Mean entropy of a token (term `entropy` or `adaptive_entropy`).",
            "The same as for `policy/entropy`, which the checks judge.",
        ),
        Metric(
            ("entropy_coef",), "none", "Coefficient of `adaptive_entropy`.", "From 0 to the option `most` of the term."
        ),
        Metric(("sft",), "nats", "Mean cross-entropy of a token in rows that an expert wrote (term `sft`).", _TEXT),
        Metric(("echo",), "nats", "Mean cross-entropy of a token in the outputs of tools (term `echo`).", _TEXT),
        Metric(
            ("external",),
            "share",
            "Share of tokens from external data in the loss `rl_plus`.",
            "No general range: it depends on the share of external rows.",
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
            "Number of tokens of a step's rows with an advantage.",
            "Above 0; at 0, nothing is learned. " + _LENGTHS,
        ),
        Metric(
            ("tokens/no_grad",),
            "tokens",
            "Number of tokens of a step's passes without a gradient: those of the reference model and, if needed, "
            "those that compute old probabilities.",
            _LENGTHS,
        ),
        Metric(
            ("tokens/share_trained",),
            "share",
            "`tokens/trained` divided by `tokens/computed`; above 1 if rows share prefixes.",
            "Higher is better. No general range: padding and shared prefixes depend on the lengths of episodes.",
        ),
        Metric(("seconds/rollout",), "seconds", "Time of a step's rollout.", _MACHINE, ("throughput_falls",)),
        Metric(("seconds/reward",), "seconds", "Time of computing rewards after the rollout.", _MACHINE),
        Metric(("seconds/select",), "seconds", "Time of the selector.", _MACHINE),
        Metric(("seconds/advantage",), "seconds", "Time of computing advantages.", _MACHINE),
        Metric(("seconds/hand_over",), "seconds", "Time of the weight sync to the engine.", _MACHINE),
        Metric(("seconds/train",), "seconds", "Time of a step's passes with a gradient.", _MACHINE),
        Metric(
            ("seconds/wait",),
            "seconds",
            "Time that a step waits for a prefetched rollout.",
            "Near 0 if the rollout takes less time than the training; otherwise no general range.",
        ),
        Metric(
            ("seconds/share_waiting",),
            "share",
            "Mean wait of a process for the slowest one, as a share of the rollout's time.",
        ),
        Metric(
            ("rollout/slowest_process",),
            "number",
            "Rank of the process whose rollout took the longest; only in runs of several processes.",
        ),
        Metric(
            ("seconds/offload",),
            "seconds",
            "Time of moving the optimizer's state (`optim.offload_state`): to host memory, as a part of "
            "`seconds/hand_over`, and back before training.",
            _MACHINE,
        ),
        Metric(("seconds/tool",), "seconds", "Mean time that an episode spends in the environment.", _MACHINE),
        Metric(("seconds/engine_wait",), "seconds", "Mean time that an episode waits for the engine.", _MACHINE),
        Metric(
            ("speed/train_tokens_per_second",),
            "tokens per second",
            "Tokens trained on per second, over all processes; in a cold start, in the first process only.",
            "Higher is better. " + _MACHINE,
        ),
        Metric(
            ("speed/generated_tokens_per_second",),
            "tokens per second",
            "Number of tokens that the engines generate per second of the rollout, over all processes.",
            "Higher is better. " + _MACHINE,
        ),
        Metric(
            ("speed/mfu",),
            "share",
            "Operations of the model per second, as a share of the device's peak, if the peak is known.",
            "Higher is better. " + _MACHINE,
        ),
    ),
    "Engine and memory": (
        Metric(
            ("engine/generated_tokens",),
            "tokens",
            "Number of tokens that the engine generates in a rollout, if the engine reports them.",
            _MACHINE,
        ),
        Metric(
            ("engine/cached_share",),
            "share",
            "Share of prompt tokens found in the engine's cache.",
            "Higher is better. No general range: it depends on the number of turns and on the size of the cache.",
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
            _MACHINE,
        ),
        Metric(("memory/process_gib",), "GiB", "Mean resident memory of a process."),
        Metric(
            ("memory/peak_gib",),
            "GiB",
            "Peak memory of the device, or of the process on a CPU, in a cold start.",
            "Below the memory of the machine.",
        ),
    ),
}
"""The metrics by the part of a run that they describe."""
