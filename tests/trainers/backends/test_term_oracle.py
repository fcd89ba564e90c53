"""The other terms of the loss: the TRL backend's steps equal those of the reference, with each formula written again.

As in ``test_oracle``, a covering set of cases: every pair of a way to compute (micro-batches, processes, fillers, LoRA,
recomputation, ...) and a term occurs.
"""

import pytest
from oracle_cases import OTHER_TERMS, Running, covering, processes_of

pytestmark = pytest.mark.train

TOLERANCE = 1e-5
"""Of the loss relative to itself, or 1 if it is smaller; of a gradient relative to its tensor's largest; in float32."""
CANCELS = {"gvpo": 5e-5}
"""The same for terms whose rows have slopes that add up to nothing, so that a gradient is small beside its parts."""
CASES = sorted(covering(OTHER_TERMS), key=processes_of)


def ids(case):
    return "-".join(str(value) for value in case.values())


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What is found in each case."""
    with Running({ids(case): case for case in CASES}, tmp_path_factory.mktemp("cases")) as running:
        yield running


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_the_backend_equals_the_reference(case, found):
    steps, tolerance = found[ids(case)]["steps"], CANCELS.get(case["policy"], TOLERANCE)
    assert len(steps) == 2 * case["minibatches"]
    for step in steps:
        assert step["loss"] < tolerance
        assert {name: apart for name, apart in step["gradients"].items() if not apart < tolerance} == {}
        assert step["tensors"] > 0, "a loss without a gradient shows nothing"


AT_WORK = {
    "cispo": ("clip/low", "clip/high"),
    "cispo-sampled": ("clip/high",),
    "clip_cov": ("clip/dropped", "clip/low", "clip/high"),
    "dppo": ("clip/dropped",),
    "dppo-kl": ("clip/dropped",),
    "fipo": ("clip/low", "clip/high"),
    "gmpo": ("clip/low", "clip/high"),
    "gspo-token": ("clip/low", "clip/high"),
    "m2po": ("clip/dropped",),
    "rollout_is": ("clip/dropped",),
}
"""The shares of tokens that each term keeps from training, or bounds."""


@pytest.mark.parametrize("term", AT_WORK)
def test_the_bounds_of_a_term_are_at_work(term, found):
    """A case in which nothing is bounded, or everything is dropped, would prove little."""
    for name in AT_WORK[term]:
        pairs = [found[ids(case)]["figures"][name] for case in CASES if case["policy"] == term]
        shares = [total / count for total, count in pairs]
        assert max(shares) < 0.7, (name, shares)
        assert sum(share > 0.01 for share in shares) >= len(shares) / 2, (name, shares)
