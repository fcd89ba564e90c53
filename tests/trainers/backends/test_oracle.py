"""The TRL backend's optimizer steps equal those of the reference backend, however they are computed.

A covering set of cases: every pair of a way to compute (micro-batches, processes, fillers, LoRA, recomputation, ...)
and a part of the loss occurs, and so does every pair of parts.
"""

import pytest
from oracle_cases import FACTORS, Running, covering, processes_of

pytestmark = pytest.mark.train

TOLERANCE = 1e-5
"""Of the loss relative to itself, or 1 if it is smaller; of a gradient relative to its tensor's largest; in float32."""
CASES = sorted(covering(FACTORS), key=processes_of)


def ids(case):
    return "-".join(str(value) for value in case.values())


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What is found in each case."""
    with Running({ids(case): case for case in CASES}, tmp_path_factory.mktemp("cases")) as running:
        yield running


def test_the_cases_hold_every_pair_of_values():
    names = list(FACTORS)
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            seen = {(case[one], case[other]) for case in CASES}
            assert len(seen) == len(FACTORS[one]) * len(FACTORS[other]), (one, other)


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_the_backend_equals_the_reference(case, found):
    steps = found[ids(case)]["steps"]
    assert len(steps) == 2 * case["minibatches"]
    for step in steps:
        assert step["loss"] < TOLERANCE
        assert {name: apart for name, apart in step["gradients"].items() if not apart < TOLERANCE} == {}
    assert steps[0]["tensors"] == len(steps[0]["gradients"]), "every tensor has a gradient"


def test_rows_are_computed_as_the_case_says(found):
    for case in CASES:
        for step in found[ids(case)]["steps"]:
            assert (step["trees"] > 0) <= case["prefixes"]
            if case["minibatches"] == 1 and not case["prefixes"]:
                assert step["micro_batches"][0] == min(case["micro_batches"], max(step["rows"]))
            assert len(set(step["micro_batches"])) == 1, "processes are in step"
            for rows, computed, count, fillers in zip(
                step["rows"], step["computed"], step["micro_batches"], step["fillers"], strict=True
            ):
                assert computed <= rows
                assert fillers == max(0, count - computed), "fillers only keep processes in step"
            # The groups of a later step may all be on one process, which has the fewest tokens in the steps together.
            if case["minibatches"] == 1 or not case["prefixes"]:
                assert all(step["rows"]) == (case["processes"] != "2-idle"), "also if one process played all groups"
    shared = [case for case in CASES if case["prefixes"]]
    assert sum(step["trees"] > 0 for case in shared for step in found[ids(case)]["steps"]) > len(shared)
    idle = [case for case in CASES if case["processes"] == "2-idle"]
    assert all(max(step["fillers"]) > 0 for case in idle for step in found[ids(case)]["steps"])


def test_clips_and_corrections_are_at_work(found):
    """A case in which nothing is clipped, or everything is dropped, would prove little."""
    steps = [step for case in CASES for step in found[ids(case)]["steps"]]
    assert sum(step["tensors"] == 0 for step in steps) < len(steps) / 50
    shares = {}
    for case in CASES:
        for name, (total, count) in found[ids(case)]["figures"].items():
            if count:  # no token may have had as many calls before it
                shares.setdefault((name, case["policy"]), []).append(total / count)
                shares.setdefault((name, case["correction"]), []).append(total / count)
    for policy in ("token", "turn", "sequence", "two_sided", "dual"):
        for name in ("clip/low", "clip/high"):
            clipped = shares[name, policy]
            assert max(clipped) < 0.6
            assert sum(share > 0.02 for share in clipped) >= len(clipped) / 2, (name, policy, clipped)
    for policy in ("two_sided", "dual"):
        clipped = shares["clip/outer", policy]
        assert sum(share > 0 for share in clipped) >= len(clipped) / 2
    for correction in ("mask-token", "mask-sequence", "geometric-turn"):
        masked = shares["mismatch/masked", correction]
        assert sum(share > 0 for share in masked) >= 0.8 * len(masked), (correction, masked)
        assert max(masked) < 0.9, (correction, masked)
