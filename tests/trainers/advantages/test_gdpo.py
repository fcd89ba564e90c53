"""``gdpo``: components are normalized apart; golden numbers of both orders."""

import numpy as np
import pytest
from credit import EXACT, Said, advantages, episode

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.advantages.gdpo import Gdpo
from rstar2_env.trainers.ranks import ONE

ACC, FMT = [1, 0, 0, 1], [1, 1, 0, 1]


def group(*components, lengths=(3, 3, 3, 3)):
    """Episodes with these values of two components; the reward is their sum, as the trainer sets it."""
    return [
        episode(Said(length, 0), reward=sum(values), rewards=dict(zip("ab", values, strict=True)))
        for values, length in zip(zip(*components, strict=True), lengths, strict=True)
    ]


def test_golden_numbers_of_the_sum_and_of_the_whitened_sum():
    own = group(ACC, FMT, lengths=(1, 1, 1, 1))
    summed = [1.366, -0.366, -2.366, 1.366]
    assert advantages(f"gdpo:whiten=none,{EXACT}", own) == [pytest.approx(summed, abs=5e-4)]
    for whiten in ("episodes", "tokens"):
        found = advantages(f"gdpo:whiten={whiten},{EXACT}", own)
        assert found == [pytest.approx([0.7691, -0.2061, -1.3321, 0.7691], abs=5e-5)]


def test_golden_numbers_of_a_sum_that_is_normalized_afterwards():
    assert advantages(f"group_norm:{EXACT}", group(ACC, FMT)) == [
        pytest.approx([0.7833, -0.2611, -1.3056, 0.7833], abs=5e-5)
    ]


def test_mixtures_with_the_same_sum_stay_apart():
    own = group([1, 0, 0, 0], [0, 1, 1, 0])
    same = advantages("group_norm", own)[0]
    assert same[0] == same[1]
    apart = advantages("gdpo", own)[0]
    assert apart[0] > apart[1] + 0.1


def test_tokens_weigh_by_the_length_of_their_episodes():
    own = group(ACC, FMT, lengths=(1, 1, 10, 1))
    values = np.array(advantages(f"gdpo:whiten=tokens,{EXACT}", own)[0])
    lengths = np.array([1, 1, 10, 1])
    assert values @ lengths == pytest.approx(0)
    assert np.square(values) @ lengths / (lengths.sum() - 1) == pytest.approx(1)


def test_weights_are_those_of_the_normalized_components():
    half = advantages(f'gdpo:whiten=none,{EXACT},weights={{"b": 0.5}}', group(ACC, FMT))[0]
    assert half == pytest.approx([0.866 + 0.25, -0.866 + 0.25, -0.866 - 0.75, 0.866 + 0.25], abs=5e-4)
    scaled = group([3 * value for value in ACC], FMT)
    assert advantages("gdpo", scaled)[0] == pytest.approx(advantages("gdpo", group(ACC, FMT))[0], abs=1e-3)


def test_weights_of_a_component_that_is_not_there_are_refused():
    with pytest.raises(ConfigurationError, match=r"names c, but the components of the reward are a, b"):
        advantages('gdpo:weights={"c": 1}', group(ACC, FMT))


def test_an_episode_without_a_score_takes_no_part_in_that_component():
    own = group(ACC, FMT)
    del own[0].rewards["b"]
    values = advantages(f"gdpo:whiten=none,{EXACT}", own)[0]
    third = 1 / 3**0.5
    assert values == pytest.approx([0.866, -0.866 + third, -0.866 - 2 * third, 0.866 + third], abs=5e-4)


def test_what_the_environment_told_apart_is_no_component_of_the_trainer():
    own = group(ACC, FMT)
    for place, one in enumerate(own):
        one.rewards["return/steps"] = float(place)
    assert advantages("gdpo", own) == advantages("gdpo", group(ACC, FMT))


def test_two_processes_whiten_together_also_where_one_has_no_component_of_a_name():
    groups = [
        group(ACC, FMT),
        group(FMT, [1, 0, 0, 0]),
        [episode(Said(2, 0), reward=1.0), episode(Said(5, 0), reward=0.0)],
    ]
    for written in ("gdpo", "gdpo:whiten=tokens", 'gdpo:weights={"a": 2}'):
        shares = groups[:2], groups[2:]
        apart = in_processes(2, lambda ranks: advantages(written, *shares[ranks.rank], ranks=ranks))  # noqa: B023
        for one, other in zip([*apart[0], *apart[1]], advantages(written, *groups), strict=True):
            assert one == pytest.approx(other)


def test_eps_is_added_to_the_deviation_of_each_component():
    own = [episode(Said(1, 0), reward=value, rewards={"a": value}) for value in (1.0, 0.0)]
    (values,) = advantages("gdpo:whiten=none,eps=1", own)
    assert values == pytest.approx([0.5 / (0.5**0.5 + 1), -0.5 / (0.5**0.5 + 1)])


def test_a_component_with_an_episode_at_its_mean_counts():
    own = [episode(Said(1, 0), reward=value, rewards={"a": value}) for value in (0.0, 1.0, 2.0)]
    assert advantages(f"gdpo:whiten=none,{EXACT}", own) == [pytest.approx([-1, 0, 1])]


def test_without_components_the_reward_is_the_only_one():
    own = [episode(Said(1, 0), reward=value) for value in (1.0, 0.0, 0.0)]
    assert advantages(f"gdpo:whiten=none,{EXACT}", own) == [pytest.approx([2 / 3**0.5, -1 / 3**0.5, -1 / 3**0.5])]


def test_weights_are_accepted_where_no_episode_was_selected():
    assert Gdpo(weights={"a": 2.0})([], ONE) == []


def test_components_are_listed_in_order():
    names = ["blue", "fast", "green", "ok", "red", "slow"]
    own = [episode(Said(1, 0), reward=1.0, rewards=dict.fromkeys(names, 1.0))]
    weights = dict.fromkeys(("z", "x", "w", "v", "u", "t"), 1.0)
    expected = "t, u, v, w, x, z, but the components of the reward are blue, fast, green, ok, red, slow"
    with pytest.raises(ConfigurationError, match=expected):
        Gdpo(weights=weights)([own], ONE)


def test_components_are_added_in_the_order_of_their_names():
    """Else the sum, which is rounded, would differ between processes, whose sets have other orders."""
    weights = dict(zip("abcdefgh", (1e16, 1.0, -1e16, 3.0, 7e15, 5.0, -7e15, 9.0), strict=True))
    own = [episode(Said(1, 0), reward=value, rewards=dict.fromkeys(weights, value)) for value in (1.0, 0.0)]
    expected = 0.0
    for weight in weights.values():
        expected += weight * 0.5 / 0.5**0.5
    assert advantages(Gdpo(weights=weights, whiten="none", eps=0.0), own) == [[expected, -expected]]
