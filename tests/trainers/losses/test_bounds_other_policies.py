"""Terms that follow other policies (a teacher, rows of others, a reference), at their bounds and far away."""

import math

import pytest
import torch
from bounded_tokens import HALF, TWO, figure, loss, of

from rstar2_env.core.options.parts import make_part
from rstar2_env.trainers.losses.base import LOSSES
from rstar2_env.trainers.losses.kdrl import to_teacher


class TestRlPlus:
    def test_only_rows_of_others_are_weighed_by_the_mixture(self):
        made = of((2, 1), (2, 1), (2, 1), logp=[HALF] * 3, off_policy=[0.0, 0.5, 1.0])
        values, _ = loss("rl_plus:gamma=2", made)
        external = -2 * 0.5 / ((0.25 + 1) / 2 + 0.25) * 0.25
        assert values == pytest.approx([-1.2, -1.2, external])
        assert figure("rl_plus", "external", made) == (1, 3)

    def test_the_advantage_multiplies_it(self):
        values, _ = loss("rl_plus:gamma=0", of((1, -3), logp=[HALF], off_policy=[1]))
        assert values == pytest.approx([3 * 2 * 0.5 / (0.75 + 0.5)])

    def test_probabilities_are_between_exp_of_minus_20_and_1(self):
        made = of((1, 1), (1, 1), logp=[-30.0, 0.5], off_policy=[1, 1])
        tiny = math.exp(-20)
        values, _ = loss("rl_plus:gamma=0", made)
        assert values == pytest.approx([-2 * tiny / ((tiny + 1) / 2 + tiny), -2 / 2])

    def test_the_weight_of_a_token_has_no_gradient(self):
        made = of((1, 1), logp=[HALF], off_policy=[1])
        (value,), (slope,) = loss("rl_plus:gamma=1", made)
        assert value == slope == pytest.approx(-2 * 0.5 / (0.75 + 0.5) * 0.5)


class TestShapedOffpolicy:
    def test_only_rows_of_others_are_shaped(self):
        made = of((2, 1), (2, 1), (2, 1), logp=[HALF] * 3, off_policy=[0.0, 0.5, 1.0])
        assert loss("shaped_offpolicy:gamma=0.5", made)[0] == pytest.approx([-2, -2, -0.5])
        assert loss("shaped_offpolicy:gamma=0.5", of((1, -3), logp=[HALF], off_policy=[1]))[0] == pytest.approx([1.5])

    def test_probabilities_are_between_exp_of_minus_20_and_1(self):
        made = of((1, 1), (1, 1), logp=[-30.0, 0.5], off_policy=[1, 1])
        tiny = math.exp(-20)
        assert loss("shaped_offpolicy:gamma=1", made)[0] == pytest.approx([-tiny / (tiny + 1), -0.5])


class TestSft:
    def test_only_tokens_of_others_are_learned_and_counted(self):
        made = of((1, 1), (1, 1), (1, 1), logp=[-1.0, -2.0, -4.0], off_policy=[0.0, 0.5, 1.0])
        assert loss("sft:coef=0.5", made)[0] == pytest.approx([0, 1, 2])
        assert figure("sft", "sft", made) == (6, 2)


class TestKdrl:
    def test_the_teacher_is_followed_in_answers_that_are_not_right(self):
        made = of((1, 1), (1, 1), (1, 1), logp=[-1.0] * 3, correct=[0.0, 0.5, 1.0])
        made.teacher = torch.tensor([[-2.0, -2.0, -2.0, 50.0]], dtype=torch.float64)
        assert loss("kdrl:coef=2,estimator=k1", made)[0] == pytest.approx([2, 2, 0])
        assert figure("kdrl", "teacher_kl", made) == (pytest.approx(3 * math.exp(-1)), 3)


class TestOpd:
    def made(self, *ratios, logp, teacher):
        made = of(*((ratio, 0) for ratio in ratios), logp=logp)
        made.teacher = torch.tensor([[*teacher, 50.0]], dtype=torch.float64)
        return made

    def test_a_token_that_fell_by_more_than_the_bound_is_dropped(self):
        """From 1 to 1/2: the fall is 1/2."""
        for bound, value in ((0.5, -0.5 * 1.0), (0.49, 0.0)):
            made = self.made(0.5, logp=[HALF], teacher=[HALF + 1])
            assert loss(f"opd:drop_below={bound}", made)[0] == pytest.approx([value])

    def test_the_fall_is_from_the_anchor(self):
        """From 1 to 1/2 since ``old``, and from 1/2 to 1/2 since ``sampled``."""
        for anchor, value in (("old", 0.0), ("sampled", -1.0)):
            made = self.made(1, logp=[HALF], teacher=[HALF + 1])
            made.old = torch.zeros_like(made.old)
            assert loss(f"opd:drop_below=0.4,anchor={anchor}", made)[0] == pytest.approx([value])

    def test_a_log_probability_above_0_is_a_probability_of_1(self):
        made = self.made(0.5 / math.exp(0.1), logp=[HALF], teacher=[HALF + 1])
        assert loss("opd:drop_below=0.55", made)[0] == pytest.approx([-0.5 / math.exp(0.1)])

    def test_the_signal_is_bounded_on_both_sides(self):
        made = self.made(1, 1, 1, logp=[-4.0] * 3, teacher=[-1.0, -7.0, -3.5])
        assert loss("opd:bound=2", made)[0] == pytest.approx([-2, 2, -0.5])

    def test_the_square_of_the_log_ratio_is_added(self):
        made = self.made(2, logp=[-1.0], teacher=[-1.0])
        assert loss("opd:coef=3,square=0.5", made)[0] == pytest.approx([3 * 0.5 * TWO**2])


class TestEcho:
    def test_the_environments_tokens_that_answer_calls_are_learned(self):
        made = of((1, 1), (1, 1), (1, 1), logp=[-1.0, -2.0, -4.0])
        made.answered = torch.tensor([[0, 1, -1, 2]])
        for spec, values, total, count in (
            ("echo:coef=0.5", [0, 1, 0, -1.5], 2 - 3, 2),
            ("echo:coef=0.5,tools=false", [0.5, 1, 0, -1.5], 1 + 2 - 3, 3),
        ):
            assert make_part(LOSSES, spec)(made).tolist() == [pytest.approx(values)]
            assert figure(spec, "echo", made) == (total, count)


def test_a_distance_from_another_model_is_0_off_the_mask():
    made = of((1, 1), logp=[-1.0])
    made.reference = made.teacher = torch.tensor([[-3.0, 50.0]], dtype=torch.float64)
    for distance in (to_teacher(made), make_part(LOSSES, "kl:coef=1,estimator=k1")(made)):
        assert distance.tolist() == [[2, 0]]


@pytest.mark.parametrize(
    ("spec", "needs"),
    [
        ("kl", {"reference"}),
        ("kl:estimator=unbiased", {"reference", "old"}),
        ("kdrl", {"teacher"}),
        ("kdrl:estimator=unbiased", {"teacher", "old"}),
        ("opd", {"teacher", "old"}),
        ("opd:anchor=sampled", {"teacher"}),
        ("cispo", {"old"}),
        ("cispo:anchor=sampled", set()),
    ],
)
def test_a_term_needs_what_its_options_read(spec, needs):
    assert make_part(LOSSES, spec).needs == needs
