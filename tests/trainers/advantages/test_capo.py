"""``capo``: the table of values, the votes, and judges of one's own."""

import numpy as np
import pytest
from credit import EXACT, Said, advantages, episode, of_tokens
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import make_inner
from rstar2_env.trainers.advantages.capo import Capo
from rstar2_env.trainers.advantages.step_judges import STEP_JUDGES


def tried(reward, *statuses):
    """An episode of three turns of two tokens, the second of which makes calls."""
    return episode(Said(2, 1), Said(2, 1, statuses=statuses), Said(2, 0, reward))


def raw(group, **options):
    """The values of the policy's tokens before they are normalized."""
    part = Capo(**options)
    judge = make_inner(STEP_JUDGES, part.judge)
    return of_tokens([part.values(one, judge(one)) for one in group], group)


def test_the_golden_table_of_values():
    group = [tried(1.0, "ok"), tried(1.0, "exception"), tried(0.0, "ok"), tried(0.0, "timeout")]
    assert [list(values) for values in raw(group)] == [
        [2, 2, 2, 2, 2, 2],
        [2, 2, 1, 1, 2, 2],
        [0, 0, 0, 0, 0, 0],
        [0, 0, -1, -1, 0, 0],
    ]


def test_the_outcome_is_the_verdict_and_not_the_reward():
    group = [episode(Said(1, 0, 0.3), correct=True), episode(Said(1, 0, 0.7), correct=False)]
    assert [list(values) for values in raw(group)] == [[2], [0]]


def test_they_are_normalized_over_all_tokens_of_the_group():
    group = [tried(1.0, "exception"), tried(0.0, "ok"), episode(Said(9, 0, 1.0))]
    values = np.concatenate(of_tokens(advantages(f"capo:{EXACT}", group)[0], group))
    told = np.concatenate(raw(group))
    assert values == pytest.approx((told - told.mean()) / told.std(ddof=1))


def test_groups_are_normalized_apart():
    one, other = [tried(1.0, "ok"), tried(0.0, "ok")], [tried(1.0, "malformed"), tried(1.0, "ok")]
    alone, together = advantages("capo", one), advantages("capo", one, other)
    for own, beside in zip(alone[0], together[0], strict=True):
        assert (own == beside).all()


def test_without_a_wrong_step_it_is_the_outcome_normalized_over_tokens():
    group = [tried(1.0, "ok"), tried(0.0, "empty"), tried(0.0, "unavailable")]
    outcome = np.repeat([2.0, 0.0, 0.0], 6)
    values = np.concatenate(of_tokens(advantages(f"capo:{EXACT}", group)[0], group))
    assert values == pytest.approx((outcome - outcome.mean()) / outcome.std(ddof=1))


def test_right_answers_differ_where_one_went_through_an_error():
    values = advantages("capo", [tried(1.0, "ok"), tried(1.0, "exception")])[0]
    assert min(values[0]) > 0
    assert values[1][3] < 0 < values[1][0]


def test_all_right_without_errors_gives_zeros():
    assert not np.any(advantages("capo", [tried(1.0, "ok"), tried(1.0)])[0])


critiques = st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(4, 8)), max_size=2), max_size=5)


@given(found=critiques)
def test_what_all_critiques_name_most_name_too(found):
    one = [tried(1.0, "ok")]
    shares = {
        vote: (2 - raw(one, judge=lambda _: found, vote=vote)[0]) for vote in ("intersection", "majority", "average")
    }
    assert (shares["intersection"] <= shares["majority"]).all()
    assert ((shares["majority"] == 1) == (shares["average"] > 0.5)).all()
    assert ((shares["intersection"] == 1) == (shares["average"] == 1)).all()


def test_the_degree_of_an_average_is_the_share_of_critiques():
    found = [[(0, 2)], [(0, 2), (3, 5)], [], [(0, 1)]]
    (values,) = raw([tried(1.0)], judge=lambda _: found, vote="average")
    assert values == pytest.approx([2 - 0.75, 2 - 0.5, 2 - 0.25, 2 - 0.25, 2, 2])


def test_a_judge_may_be_the_users_own(tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Last:\n"
        "    def __init__(self, turns: int = 1):\n"
        "        self.turns = turns\n"
        "    def __call__(self, episode):\n"
        "        return [[(turn.start, turn.stop) for turn in episode.steps[-self.turns:]]]\n"
        "def none(episode):\n"
        "    return []\n"
    )
    group = [tried(1.0), tried(0.0)]
    (one, _), (two, _) = (raw(group, judge=f"{tmp_path}/mine.py:Last{more}") for more in ("", ":turns=2"))
    assert [list(one), list(two)] == [[2, 2, 2, 2, 1, 1], [2, 2, 1, 1, 1, 1]]
    assert list(raw(group, judge=f"{tmp_path}/mine.py:none")[0]) == [2] * 6


def test_a_judge_that_names_tokens_that_are_not_there_is_told_so():
    with pytest.raises(ConfigurationError, match=r"from token 0 to token 99.*has only 8 tokens"):
        raw([tried(1.0)], judge=lambda _: [[(0, 99)]])


def test_the_values_of_an_answer_and_of_a_wrong_step_are_options():
    (right, wrong) = raw([tried(1.0), tried(0.0)], judge=lambda _: [[(0, 1)]], correct=6.0, penalty=4.0)
    assert list(right) == [2, 6, 6, 6, 6, 6]
    assert list(wrong) == [-4, 0, 0, 0, 0, 0]


def test_without_critiques_no_step_is_wrong_whatever_the_vote():
    for vote in ("intersection", "majority", "average"):
        assert list(raw([tried(1.0)], judge=lambda _: [], vote=vote)[0]) == [2] * 6
