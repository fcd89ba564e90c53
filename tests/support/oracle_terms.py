"""Terms of the loss for the oracle, each with options at which it is at work in its rows, and written out once more."""

from __future__ import annotations

import math
from typing import Any

from plain_batch_terms import HoldsSome, LeastSquares, SecondMoment, WithoutSome
from plain_loss import Surrogate
from plain_terms import (
    BoundedWeight,
    GeometricMean,
    Held,
    NearInProbability,
    Reshaped,
    SoftGate,
    Tapered,
    TokenForm,
    TwoSided,
    WithItsFuture,
)

TERMS: dict[str, tuple[list[str], list[Any]]] = {
    "cispo": (["cispo:low=0.05,high=0.08"], [BoundedWeight(0.05, 0.08)]),
    "cispo-sampled": (["cispo:high=0.1,anchor=sampled"], [BoundedWeight(high=0.1, anchor="sampled")]),
    "clip_cov": (["clip_cov:share=0.2,least=0.1,low=0.05,high=0.08"], [WithoutSome(0.2, 0.1, low=0.05, high=0.08)]),
    "dppo": (["dppo:low=1e-3,high=1e-3"], [NearInProbability("tv", 1e-3, 1e-3)]),
    "dppo-kl": (["dppo:divergence=kl,low=2e-4,high=2e-4"], [NearInProbability("kl", 2e-4, 2e-4)]),
    "dro": (["dro:beta=0.5"], [Held(0.5)]),
    "fipo": (["fipo:half_life=2,high=0.08,low=0.05,safety=1.05"], [WithItsFuture(2, safety=1.05, low=0.05, high=0.08)]),
    "gmpo": (["gmpo:low=0.05,high=0.05"], [GeometricMean(0.05, 0.05)]),
    "gspo-token": (["ppo_clip:level=turn,low=0.05,high=0.08,token_gradient=true"], [TokenForm(0.05, 0.08, "turn")]),
    "gvpo": (["gvpo:beta=0.5"], [LeastSquares(0.5)]),
    "kl_cov": (["ppo_clip:low=none,high=none", "kl_cov:share=0.3"], [Surrogate(math.inf, math.inf), HoldsSome(0.3)]),
    "m2po": (["m2po:threshold=0.015"], [SecondMoment(0.015)]),
    "rollout_is": (["rollout_is"], [TwoSided()]),
    "sapo": (["sapo"], [SoftGate()]),
    "topr": (["topr:level=turn"], [Tapered("turn")]),
    "vespo": (["vespo:level=turn"], [Reshaped(level="turn")]),
}
