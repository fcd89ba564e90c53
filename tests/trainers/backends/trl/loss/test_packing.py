"""Which rows are computed together, how many micro-batches each process computes, and which rows share prefixes."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.trainers.backends.trl.loss.packing import (
    by_prefix,
    divide,
    even_out,
    pack,
    shared_lengths,
    tree_tokens,
)
from rstar2_env.trainers.plan.row_cost import RowCost

lengths = st.lists(st.integers(1, 50), max_size=30)
rows_of_few_tokens = st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=12), max_size=12)


@given(lengths, st.integers(1, 200))
def test_every_row_is_in_one_micro_batch_and_none_is_over_the_budget_but_a_long_row_alone(lengths, budget):
    batches = pack(lengths, budget)
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or len(batch) * max(lengths[place] for place in batch) <= budget for batch in batches)


@given(lengths, st.integers(1, 200))
def test_no_two_neighbours_would_have_fitted_into_one(lengths, budget):
    batches = pack(lengths, budget)
    for one, other in pairwise(batches):
        assert (len(one) + 1) * lengths[one[0]] > budget
        assert max(lengths[place] for place in other) <= min(lengths[place] for place in one)


@given(lengths, st.integers(1, 60))
def test_processes_are_kept_in_step_by_splitting_first_and_by_fillers_last(lengths, more):
    batches = pack(lengths, 60)
    count = len(batches) + more
    result = even_out(batches, count)
    assert len(result) == count
    assert sorted(place for batch in result for place in batch) == list(range(len(lengths)))
    assert result.count([]) == max(0, count - len(lengths))


@given(rows_of_few_tokens)
def test_a_token_is_computed_once_for_all_rows_that_agree_up_to_the_token_after_it(rows):
    """Counted a second time, as prefixes: a token is known by all tokens up to the one that it predicts."""
    distinct = {tuple(row[: end + 2]) for row in rows for end in range(len(row) - 1)}
    # The last token of each row predicts nothing and is never shared.
    assert tree_tokens(rows) == len(distinct) + len(rows)


def test_rows_share_what_the_row_before_them_has_up_to_the_token_before_the_first_difference():
    rows = [[1, 2, 3, 4], [1, 2, 3, 4, 5], [1, 2, 3, 9], [1, 7], [8, 7], [8, 7]]
    assert by_prefix(rows) == list(range(6))
    assert shared_lengths(rows) == [0, 3, 2, 0, 0, 1]


@given(rows_of_few_tokens, st.integers(1, 60))
def test_every_row_is_in_one_tree_or_separate_and_trees_fit_into_the_budget(rows, budget):
    trees, others = divide(rows, budget, RowCost(32))
    assert sorted([*others, *(at for tree in trees for at in tree)]) == list(range(len(rows)))
    for tree in trees:
        own = [rows[at] for at in tree]
        assert by_prefix(own) == list(range(len(own)))
        assert len(tree) > 1
        assert tree_tokens(own) <= budget
        spans = list(zip(shared_lengths(own), map(len, own), strict=True))
        separate = max(len(batch) * max(len(own[at]) for at in batch) for batch in pack(list(map(len, own)), budget))
        assert RowCost(32).memory(spans) <= separate


def groups(count, prompt, own, system=0):
    """Rows of groups of 8: a shared system message, a prompt of each group, and own tokens."""
    return [
        [*[0] * system, *[10 + group] * prompt, *[100 + 8 * group + member] * own]
        for group in range(count)
        for member in range(8)
    ]


def test_groups_with_long_prompts_share_them_and_stay_whole_where_a_tree_has_no_room_for_all():
    rows = groups(4, 400, 150)
    trees, others = divide(rows, 5300, RowCost(128))
    assert others == []
    assert [sorted({at // 8 for at in tree}) for tree in trees] == [[0, 1], [2, 3]]
    assert [len(tree) for tree in trees] == [16, 16]
    assert tree_tokens(rows) <= 0.45 * sum(map(len, rows))


def test_a_new_tree_begins_between_groups_though_they_share_a_system_message():
    rows = groups(3, 50, 20, system=60)
    trees, _ = divide(rows, 800, RowCost(128))
    assert [sorted({at // 8 for at in tree}) for tree in trees] == [[0, 1], [2]]


def test_rows_of_equal_length_that_share_little_are_separate():
    assert divide(groups(2, 5, 500), 16384, RowCost(128)) == ([], list(range(16)))


def test_rows_that_share_nothing_are_separate_though_a_tree_would_need_no_padding():
    assert divide([[1] * 500, [2] * 30], 16384, RowCost(128)) == ([], [0, 1])
    assert divide([[1] * 500, [1] * 30], 16384, RowCost(128)) == ([[1, 0]], [])


def test_rows_that_share_much_train_with_those_that_share_nothing():
    rows = [*groups(1, 400, 150), *([200 + at] * 550 for at in range(8))]
    # With room for one group in a tree, each is decided for itself.
    trees, others = divide(rows, 2800, RowCost(128))
    assert [sorted(tree) for tree in trees] == [list(range(8))]
    assert sorted(others) == list(range(8, 16))
