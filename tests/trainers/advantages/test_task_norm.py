"""``task_norm``: every task has mean 0 and deviation 1 over its tokens, whatever the estimator below."""

import numpy as np
import pytest
from credit import EXACT, Said, advantages, episode, of_tokens, plain

from rstar2_env.testing.training.processes import in_processes


def tasked(task, *rewards, tokens):
    group = plain(*rewards, tokens=tokens)
    for one in group:
        one.task = task
    return group


GROUPS = [
    tasked("small", 0.2, 0.1, 0.3, tokens=[3, 1, 2]),
    tasked("large", 90, -10, 30, tokens=[2, 2, 9]),
    tasked("small", 0.0, 0.1, tokens=[4, 1]),
]


@pytest.mark.parametrize("of", ["group_mean", "rloo", "(reinforce_pp:gamma=0.9)", "(reinforce:baseline=none)", "gigpo"])
def test_every_task_has_mean_0_and_deviation_1_over_its_tokens(of):
    values = advantages(f"task_norm:of={of},{EXACT}", *GROUPS)
    tokens = [np.concatenate(of_tokens(own, group)) for own, group in zip(values, GROUPS, strict=True)]
    for own in (np.concatenate([tokens[0], tokens[2]]), tokens[1]):
        assert own.mean() == pytest.approx(0, abs=1e-9)
        assert own.std(ddof=1) == pytest.approx(1)


def test_golden_number_a_deviation_of_02236_becomes_1():
    own = tasked("one", 0.1, 0.3, 0.5, 0.7, tokens=[1000] * 4)  # so many tokens that n - 1 is n
    before, after = (np.array(advantages(part, own)[0]) for part in ("group_mean", f"task_norm:of=group_mean,{EXACT}"))
    assert before.std() == pytest.approx(0.2236, abs=1e-4)
    assert after.std() == pytest.approx(1, abs=1e-3)


def test_a_task_whose_advantages_are_equal_gets_zeros():
    values = advantages("task_norm", GROUPS[1], tasked("flat", 1, 1, tokens=[1, 2]))
    assert values[1] == [0.0, 0.0]
    assert any(values[0])


def test_roles_are_baselined_apart():
    """The task-relative REINFORCE++ of Multi-Agent Evolve."""
    values = advantages(
        f"task_norm:of=(reinforce:baseline=none),{EXACT}",
        tasked("proposer", 0.9, 0.8, tokens=[1, 1]),
        tasked("solver", 0.1, 0.0, tokens=[1, 1]),
    )
    assert [sum(own) for own in values] == pytest.approx([0, 0])
    assert values[0] == pytest.approx(values[1])


def test_an_advantage_of_tokens_stays_one():
    group = [episode(Said(2, 1, 0.5), Said(1, 0, 0.5)), episode(Said(3, 0, 0.0))]
    values = advantages("task_norm:of=gigpo", group)[0]
    assert [np.shape(value) for value in values] == [(4,), (3,)]


def test_two_processes_normalize_together_also_where_one_lacks_a_task():
    apart = in_processes(2, lambda ranks: advantages("task_norm", *(GROUPS[:1], GROUPS[1:])[ranks.rank], ranks=ranks))
    for one, other in zip([*apart[0], *apart[1]], advantages("task_norm", *GROUPS), strict=True):
        assert one == pytest.approx(other)


def test_a_task_of_one_token_or_none_has_nothing_to_compare_with():
    none = episode(Said(0, 2), reward=1.0, task="none")
    groups = [tasked("one", 3.0, tokens=[1]), [none], tasked("two", 1, 0, tokens=[1, 1])]
    values = advantages(f"task_norm:of=(reinforce:baseline=none),{EXACT}", *groups)
    assert values[:2] == [[0.0], [0.0]]
    assert values[2] == [pytest.approx(0.5**0.5), pytest.approx(-(0.5**0.5))]
