"""InfoNCE on embeddings, and which rows of a group are compared with which."""

import math

import pytest
import torch
from loss_tokens import tokens

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.row import Row
from rstar2_env.trainers.losses.carft import Carft
from rstar2_env.trainers.losses.contrast import LIKE, NEITHER, UNLIKE, relations
from rstar2_env.trainers.losses.ppo_clip import PpoClip


def loss(own, peers, what, **options):
    """Of one row, with its gradient with respect to its embedding."""
    made = tokens([[-1.0, -2.0]])
    made.embedding = torch.tensor([own], dtype=torch.float64, requires_grad=True)
    made.peers = torch.tensor([peers], dtype=torch.float64).reshape(1, len(peers), len(own))
    made.relations = torch.tensor([what])
    found = Carft(**{"coef": 1.0, "temperature": 1.0, **options})(made)
    assert found.shape == (1, 2)
    assert found[0, 0] == found[0, 1], "every token of the row has the row's loss"
    (slope,) = torch.autograd.grad(found[0, 0], made.embedding)
    return found[0, 0].item(), slope[0].tolist()


def test_a_row_that_is_as_it_is_to_be_has_no_loss_left():
    found, _ = loss([1.0, 0.0], [[2.0, 0.0], [-1.0, 0.0]], [LIKE, UNLIKE], temperature=0.05)
    assert found == pytest.approx(0, abs=1e-9)


def test_where_nothing_tells_right_from_wrong_it_is_the_logarithm_of_their_number():
    """One right and seven wrong ones that look alike: ln 8."""
    found, _ = loss([1.0, 0.0], [[0.0, 1.0]] * 8, [LIKE] + [UNLIKE] * 7)
    assert found == pytest.approx(math.log(8))


def test_it_is_the_mean_over_the_right_ones_each_against_all_wrong_ones():
    cosines = {"a": 1.0, "b": 0.6, "w": 0.0, "v": -0.8}
    against = math.exp(0.0 / 0.5) + math.exp(-0.8 / 0.5)
    each = [-math.log(math.exp(s / 0.5) / (math.exp(s / 0.5) + against)) for s in (cosines["a"], cosines["b"])]
    peers = [[3.0, 0.0], [0.6, 0.8], [0.0, 2.0], [-0.8, 0.6]]
    found, slope = loss([5.0, 0.0], peers, [LIKE, LIKE, UNLIKE, UNLIKE], temperature=0.5)
    assert found == pytest.approx(sum(each) / 2)
    assert slope[0] == pytest.approx(0, abs=1e-9), "the length of an embedding does not count"


@pytest.mark.parametrize("what", [[NEITHER, NEITHER], [UNLIKE, UNLIKE], [LIKE, NEITHER]])
def test_without_a_right_one_or_a_wrong_one_there_is_nothing_to_tell_apart(what):
    found, slope = loss([1.0, 0.5], [[0.0, 1.0], [1.0, 0.0]], what)
    assert found == 0
    assert slope == [0, 0]


def test_a_row_that_is_alone_in_its_group_has_no_loss():
    assert loss([1.0, 0.5], [], []) == (0, [0, 0])


def test_with_a_weight_of_zero_the_policys_loss_is_as_it_was():
    made = tokens([[-1.0, -2.0]])
    made.embedding = torch.tensor([[1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    made.peers = torch.ones(1, 2, 2, dtype=torch.float64)
    made.relations = torch.tensor([[LIKE, UNLIKE]])
    assert torch.equal(PpoClip()(made) + Carft(coef=0.0)(made), PpoClip()(made))


def test_without_embeddings_it_says_what_is_missing():
    with pytest.raises(ConfigurationError, match="needs the embedding"):
        Carft()(tokens([[-1.0]]))


def rows(*what):
    """Rows of (group, right, source)."""
    return [Row(Episode(group=g, correct=right, source=source), [1], [2], [1], [0.0]) for g, right, source in what]


def test_a_right_answer_is_to_be_like_other_right_ones_and_unlike_wrong_ones_of_its_group():
    made = rows((0, True, "policy"), (0, False, "policy"), (1, True, "policy"), (0, True, "policy"))
    assert relations(made, 0) == ([1, 3], [UNLIKE, LIKE])


def test_where_there_is_an_experts_answer_it_is_to_be_like_that_one_alone():
    made = rows((0, True, "policy"), (0, True, "policy"), (0, True, "expert"), (0, False, "policy"))
    assert relations(made, 0) == ([1, 2, 3], [NEITHER, LIKE, UNLIKE])


@pytest.mark.parametrize("position", [1, 2])
def test_wrong_answers_and_the_experts_own_are_drawn_nowhere(position):
    made = rows((0, True, "policy"), (0, False, "policy"), (0, True, "expert"))
    assert set(relations(made, position)[1]) == {NEITHER}


def test_rows_of_the_same_episode_are_not_compared():
    one, other = rows((0, True, "policy"), (0, True, "policy"))
    again = Row(one.episode, [1], [2], [1], [0.0])
    assert relations([one, again, other], 0) == ([2], [LIKE])


def test_several_rows_each_with_peers_of_its_own():
    made = tokens([[-1.0] * 4] * 2)
    made.embedding = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    peers = [[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], [[0.0, 2.0], [0.0, 3.0], [3.0, 0.0]]]
    made.peers = torch.tensor(peers, dtype=torch.float64)
    made.relations = torch.tensor([[LIKE, UNLIKE, UNLIKE], [LIKE, LIKE, UNLIKE]])
    found = Carft(coef=2.0, temperature=1.0)(made)
    first = math.log((math.e + 1 + math.exp(-1)) / math.e)
    second = math.log((math.e + 1) / math.e)
    assert found.tolist() == [pytest.approx([2 * first] * 4), pytest.approx([2 * second] * 4)]


def test_an_embedding_of_nearly_no_length_is_like_none():
    """The product of the lengths, 1.5e-9, still counts; without any length, every similarity is 0."""
    found, _ = loss([1.0, 0.0], [[1.5e-9, 0.0], [0.0, 1.0]], [LIKE, UNLIKE])
    assert found == pytest.approx(math.log((math.e + 1) / math.e))
    found, slope = loss([1.0, 0.0], [[0.0, 0.0], [0.0, 1.0]], [LIKE, UNLIKE])
    assert found == pytest.approx(math.log(2))
    assert all(math.isfinite(one) for one in slope)


@pytest.mark.parametrize("missing", ["embedding", "peers", "relations"])
def test_what_is_missing_is_refused(missing):
    made = tokens([[-1.0]])
    made.embedding, made.peers = torch.ones(1, 2), torch.ones(1, 1, 2)
    made.relations = torch.tensor([[LIKE]])
    setattr(made, missing, None)
    with pytest.raises(ConfigurationError, match="embedding of each row"):
        Carft()(made)


def test_relations_are_1_minus_1_and_0():
    def of(correct, source="policy", group=1):
        return Row(Episode(correct=correct, source=source, group=group), [1], [2], [1], [0.0], 1.0)

    group = [of(True), of(True), of(False), of(False, group=2), of(False)]
    assert relations(group, 0) == ([1, 2, 4], [1, -1, -1])
    assert relations(group, 2) == ([0, 1, 4], [0, 0, 0])
    helped = [*group, of(True, "expert")]
    assert relations(helped, 0) == ([1, 2, 4, 5], [0, -1, -1, 1])
    assert relations(helped, 5) == ([0, 1, 2, 4], [0, 0, 0, 0])
