"""What terms make of the whole optimizer batch, and how it comes back to the tokens of a micro-batch."""

import numpy as np
import pytest
import torch
from loss_tokens import tokens
from training_rows import row

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing import check_correction, check_loss
from rstar2_env.testing.harness import ConformanceError
from rstar2_env.trainers.losses.base import is_corrected, prepared, token_losses
from rstar2_env.trainers.losses.batch_tokens import BatchTokens, with_columns
from rstar2_env.trainers.losses.ppo_clip import PpoClip
from rstar2_env.trainers.ranks import ONE


def rows():
    """Three rows of two groups: 4, 0 and 3 tokens of the policy's."""
    made = [row(7, 2, 5, 1.0), row(7, 2, 3, 0.0), row(9, 2, 4, np.array([1.0, 9.0, 3.0, 4.0]))]
    for one, mask in zip(made, ([1, 1, 0, 1, 1], [0, 0, 0], [1, 0, 1, 1]), strict=True):
        one.mask = mask
        one.logprobs = [-0.5 * own for own in mask]
    return made


def batch(given=None):
    given = rows() if given is None else given
    logp = [np.arange(len(one.mask), dtype=float) for one in given]
    return BatchTokens.of(given, logp, [values - 10 for values in logp])


def test_the_policys_tokens_stand_in_line():
    made = batch()
    assert made.logp.tolist() == [0, 1, 3, 4, 0, 2, 3]
    assert made.old.tolist() == [-10, -9, -7, -6, -10, -8, -7]
    assert made.sampled.tolist() == [-0.5] * 7
    assert made.advantage.tolist() == [1, 1, 1, 1, 1, 3, 4]
    assert made.row.tolist() == [0, 0, 0, 0, 2, 2, 2]
    assert made.groups.tolist() == [7, 7, 9]
    assert made.lengths().tolist() == [4, 0, 3]


def test_a_process_without_rows_has_no_tokens():
    made = batch([])
    assert made.logp.shape == made.row.shape == made.lengths().shape == (0,)


def test_columns_come_back_to_the_rows_which_stay_as_they_are():
    given = rows()
    given[0].columns["own"] = 5.0
    found = with_columns(given, {"mine": np.arange(1.0, 8.0)})
    assert [one.columns["mine"].tolist() for one in found] == [[1, 2, 0, 3, 4], [0, 0, 0], [5, 0, 6, 7]]
    assert found[0].columns["own"] == 5.0
    assert [list(one.columns) for one in given] == [["own"], [], []]
    assert found[2].advantage is given[2].advantage


class Counts:
    """The number of tokens of the batch, in a column."""

    needs = frozenset()
    policy_gradient = True

    def __init__(self, name="count"):
        self.name = name

    def prepare(self, batch, ranks, rng):
        (total,) = ranks.sum(np.array([len(batch.logp)], float))
        return {self.name: np.full(len(batch.logp), total)}

    def __call__(self, tokens):
        return -tokens.advantage * tokens.logp * tokens.column(self.name)


def test_the_columns_of_all_terms_are_prepared_and_two_of_a_name_are_refused():
    rng = np.random.default_rng(0)
    columns = prepared([Counts(), PpoClip(), Counts("other")], batch(), ONE, rng)
    assert {name: values.tolist() for name, values in columns.items()} == {"count": [7.0] * 7, "other": [7.0] * 7}
    with pytest.raises(ConfigurationError, match="'count'"):
        prepared([Counts(), Counts()], batch(), ONE, rng)


def test_a_column_that_nobody_prepared_is_an_error_except_where_there_is_no_token():
    with pytest.raises(ConfigurationError, match=r"'count'.*prepare"):
        Counts()(tokens([[-1.0]]))
    assert Counts()(tokens([[-1.0]], mask=[[0]], turn=[[-1]])).tolist() == [[0.0]]


class InTheEngine(PpoClip):
    corrected = False


def test_a_ratio_against_the_engine_is_not_corrected_again():
    assert is_corrected(PpoClip())
    assert not is_corrected(InTheEngine())
    made = tokens([[-1.0]])
    weights = torch.full((1, 1), 3.0, dtype=torch.float64)
    assert token_losses(made, [PpoClip()], weights).item() == -3
    assert token_losses(made, [InTheEngine()], weights).item() == -1


class OfThisProcess(Counts):
    """A column that forgets the other processes."""

    def prepare(self, batch, ranks, rng):
        return {self.name: np.full(len(batch.logp), float(len(batch.logp)))}


def test_the_check_finds_a_column_that_depends_on_the_processes():
    assert "preparing" in check_loss(Counts())
    with pytest.raises(ConformanceError, match="on several processes, the column 'count'"):
        check_loss(OfThisProcess())


class Punishes:
    """A correction that drops what has a negative advantage."""

    needs = frozenset()

    def __call__(self, tokens):
        return 1.0 - ((tokens.advantage < 0) & (tokens.logp.detach() < tokens.sampled)).double()


class PunishesAndSaysSo(Punishes):
    reads_advantage = True


def test_a_correction_that_reads_the_advantage_has_to_say_so():
    with pytest.raises(ConformanceError, match="a weight depends on the advantages"):
        check_correction(Punishes())
    assert "advantages" in check_correction(PunishesAndSaysSo())


def test_the_key_of_a_token_is_its_group_the_row_in_it_and_the_token_in_that():
    given = [*rows(), row(7, 2, 2, 1.0)]
    given[-1].mask = [1, 1]
    made = batch(given)
    assert made.keys().tolist() == [
        *([7, 0, token] for token in range(4)),
        *([9, 0, token] for token in range(3)),
        *([7, 2, token] for token in range(2)),
    ]
    assert made.marked(np.array([[7, 2, 1], [9, 0, 0], [7, 5, 0], [8, 0, 0]])).tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 1]
