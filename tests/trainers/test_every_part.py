"""Every registered part of every slot, and every recipe, keeps its contract."""

import pytest
from places import SUPPORT

from rstar2_env import testing
from rstar2_env.problems import Problem
from rstar2_env.trainers.base import TRAINERS
from rstar2_env.trainers.options.slots import FIELDS

FILES = Problem(
    "sum",
    "6 times 7?",
    "+++ b/a.py\n+a = 3\n",
    meta={"files": {"a.py": "a = 1\n"}, "rubric": [{"criterion": "Says 42.", "points": 2}]},
)
"""A problem with what some rewards read of it."""
WITH = {
    ("aggregation", "const_len"): [{"length": 64}],
    ("advantage", "group_mean_batch_std"): [{}, {"of": "centred"}],
    ("advantage", "apo_stcr"): [{}, {"of": "rloo", "base": 1.5}],
    ("advantage", "arpo"): [{}, {"attribution": "hard"}],
    ("advantage", "call_penalty"): [{}, {"failed": -1.0, "how": "add", "zero_when_equal": False}],
    ("advantage", "capo"): [{"zero_when_equal": False}],
    ("advantage", "gdpo"): [{}, {"whiten": "tokens"}, {"whiten": "none"}],
    ("advantage", "gigpo"): [
        {"zero_when_equal": False},
        {"gamma": 1.0},
        {"normalize": True, "over": "turns", "anchor": "history", "similarity": 0.9, "zero_when_equal": False},
    ],
    ("advantage", "gpg"): [{}, {"count": "nonzero"}],
    ("advantage", "igpo"): [
        {"zero_when_equal": False},
        {"gamma": 0.9, "zero_when_equal": False},
        {"baseline": "group", "zero_when_equal": False},
    ],
    ("advantage", "optimal_token_baseline"): [{}, {"count": "all"}, {"zero_tail": False}],
    ("advantage", "pass_at_k"): [{}, {"k": 2}, {"normalize": True}],
    ("advantage", "quality_ties"): [{"zero_when_equal": False}, {"of": "rloo", "scale": 0.0}],
    ("advantage", "rae"): [{"zero_when_equal": False}, {"update": "last", "zero_when_equal": False}],
    ("advantage", "reinforce"): [{}, {"baseline": "none", "zero_when_equal": False}],
    ("advantage", "reinforce_pp"): [{}, {"baseline": "group", "gamma": 0.9}, {"gamma": 0.9, "zero_when_equal": False}],
    ("advantage", "task_norm"): [{}, {"of": "(reinforce_pp:gamma=0.9)", "zero_when_equal": False}],
    ("correction", "geometric"): [{}, {"level": "turn"}, {"mask": False}],
    ("correction", "mask"): [{}, {"level": "turn"}, {"level": "sequence"}],
    ("correction", "opsm"): [{}, {"anchor": "old", "level": "turn", "delta": 0.01}, {"then": "truncate:cap=3"}],
    ("correction", "truncate"): [{}, {"level": "turn"}, {"level": "sequence"}],
    ("hook", "collapse"): [{"window": 2, "patience": 2, "share": 0.1}, {"action": "save", "window": 1}],
    ("hook", "guard"): [{"high": 0.2}, {"high": 0.3, "patience": 1, "action": "stop"}, {"metric": "loss", "low": 1.0}],
    ("hook", "interleaved_sft"): [{"demonstrations": str(SUPPORT / "demonstrations.jsonl"), "size": 1}],
    ("hook", "length_stages"): [{}, {"when_cut": 0.1, "tokens": (1.0, 2.0, 3.0), "reset": (2, 3)}],
    ("hook", "policy_refresh"): [{"steps": (5,)}, {"steps": (3, 4), "optimizer": False}],
    ("hook", "token_budget"): [{"tokens": 4}],
    ("hook", "until"): [{"criterion": "rollout/reward >= 0.9"}, {"criterion": "loss < 0.2"}],
    ("hook", "reference_reset"): [{}, {"most_kl": 0.3, "patience": 1}, {"optimizer": False}],
    ("loss", "apo_dads"): [{"columns": ("accuracy",)}],
    ("loss", "echo"): [{}, {"tools": False}],
    ("loss", "kdrl"): [{"columns": ("correct",)}, {"on": "all", "estimator": "unbiased"}],
    ("loss", "kl"): [{}, *({"estimator": name} for name in ("k1", "k2", "k3+", "unbiased", "episode"))],
    ("loss", "ppo_clip"): [
        {},
        {"level": "turn"},
        {"level": "sequence"},
        {"dual": 3.0},
        {"two_sided": 4.0},
        {"level": "turn", "token_gradient": True},
    ],
    ("loss", "cispo"): [{}, {"low": 0.2, "high": 0.2}, {"anchor": "sampled"}],
    ("loss", "clip_cov"): [{}, {"share": 0.3, "least": 0.01}],
    ("loss", "dppo"): [{}, {"divergence": "kl"}, {"either": True}, {"anchor": "old"}],
    ("loss", "dro"): [{}, {"anchor": "old"}],
    ("loss", "fipo"): [{}, {"below": 0.0, "safety": None, "dual": None}],
    ("loss", "gmpo"): [{}, {"level": "turn", "low": None}],
    ("loss", "kl_cov"): [{}, {"share": 0.3}],
    ("loss", "m2po"): [{}, {"threshold": 1e-3, "of": "harmful"}, {"anchor": "old", "threshold": 5e-3}],
    ("loss", "opd"): [{}, {"bound": 0.2, "drop_below": 0.01, "square": 0.1}, {"anchor": "sampled"}],
    ("loss", "rl_plus"): [{"columns": ("off_policy",)}, {"columns": ("off_policy",), "gamma": 0.0, "low": None}],
    ("loss", "shaped_offpolicy"): [{"columns": ("off_policy",)}],
    ("loss", "sft"): [{"columns": ("off_policy",)}],
    ("loss", "topr"): [{}, {"level": "turn"}, {"level": "token", "anchor": "old"}],
    ("loss", "vespo"): [{}, {"level": "turn"}],
    ("reward", "cosine_length"): [{"longest": 100}, {"longest": 100, "of": "text"}],
    ("reward", "diff_similarity"): [{"problem": FILES}],
    ("reward", "letter_choice"): [{"problem": Problem("sum", "Which?", "B")}],
    ("reward", "exploration"): [{}, {"how": "creativity", "judge": "8"}],
    ("reward", "laser"): [{}, {"mode": "d", "limit": 16, "lowest": 2, "step": 2}, {"mode": "de", "limit": 5}],
    ("reward", "metric_threshold"): [{}, {"metric": "word_f1"}],
    ("reward", "model_verifier"): [{"judge": "CORRECT"}, {"judge": "INCORRECT"}],
    ("reward", "overlong"): [{"limit": 16, "buffer": 4}],
    ("reward", "process"): [{}, {"bound": "clip"}, {"of": "turn_rewards", "bound": "both"}],
    ("reward", "router"): [{"routes": {"sums": "return"}}, {"routes": {"sums": "reference_probability:weight=2"}}],
    ("reward", "rubric"): [{"problem": FILES}],
    ("reward", "tool_hierarchy"): [{}, {"score": "f1"}],
    ("rollout", "critique_refine"): [{}, {"critique": "simple_gt"}],
    ("rollout", "external"): [{}, {"field": "solution"}],
    ("rollout", "rubric_scaffold"): [{"steps": 10}],
    ("sampler", "curriculum"): [{}, {"window": 4, "above": 0.2}],
    ("sampler", "generated_worlds"): [
        {"worlds": ("arithmetic",), "vary": {"level": [1, 2, 3]}, "every": 2, "original": 1},
        {"worlds": ("arithmetic", "arithmetic:level=2"), "vary": {"max_number": [9, 99]}},
    ],
    ("sampler", "hard_focus"): [{"least": 2, "every": 2}, {"after": 3}],
    ("sampler", "mopps"): [{"batch": 4}, {"batch": 2, "candidates": 3, "decay": 0.5, "rule": "band"}],
    ("sampler", "potential"): [{}, {"steps": 2}],
    ("sampler", "skill_gap"): [{"every": 3}],
    ("sampler", "stages"): [{"steps": (5,)}, {"steps": (3,), "drop_above": 0.5}],
    ("sampler", "unsolved"): [{"after": 5}],
    ("selector", "all"): [{}, {"reject_equal": True}],
    ("selector", "balanced_band"): [{}, {"of": "roc", "low": 0.1}],
    ("selector", "deviation"): [{}, {"begin": 2, "filter_from": 3}, {"of": "(minimum_group:least=3)", "beta": 0.9}],
    ("selector", "minimum_group"): [{}, {"least": 3, "of": "(all:reject_equal=true)"}],
    ("selector", "quality_ties"): [{}, {"of": "(all:reject_equal=true)"}],
    ("selector", "roc"): [{}, {"mode": "rank"}, {"spare": 1.0}],
}
"""Options with which a part is checked; without any where it is not named."""


def fault(check, checks, name, **options):
    """The text of a fault, empty where every check passes."""
    try:
        passed = check(name, **options)
    except Exception as error:
        return f"{name} {options}: {type(error).__name__}: {error}"
    return "" if passed == list(checks) else f"{name} {options}: only {passed} were checked"


@pytest.mark.parametrize("slot", FIELDS)
def test_every_part_keeps_the_contract_of_its_slot(slot):
    check, checks = getattr(testing, f"check_{slot}"), getattr(testing, f"{slot.upper()}_CHECKS")
    cases = [(name, options) for name in FIELDS[slot] for options in WITH.get((slot, name), [{}])]
    found = [fault(check, checks, name, **options) for name, options in cases]
    assert [one for one in found if one] == []


def test_every_recipe_keeps_its_contract():
    found = [fault(testing.check_recipe, testing.RECIPE_CHECKS, name) for name in TRAINERS]
    assert [one for one in found if one] == []


def test_no_part_is_checked_that_is_not_there():
    assert all(name in FIELDS[slot] for slot, name in WITH)
