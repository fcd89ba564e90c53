"""The edges of drawing one token; its distribution is tested through the engine."""

from __future__ import annotations

import math

import pytest
import torch

from rstar2_env.rollout import SamplingParams
from rstar2_env.rollout.engines.token_sampler import BLOCK, draw_tokens

LOWEST, HIGHEST = 0.0, math.nextafter(1.0, 0.0)


def draw(logits: list[float], uniform: float, **options: float) -> int:
    params = SamplingParams(1, **options)  # type: ignore[arg-type]  # a table of options
    tokens, _ = draw_tokens(torch.tensor([logits]), [params], [uniform])
    return int(tokens[0])


def test_the_extremes_of_the_random_number_draw_tokens_that_can_come() -> None:
    never = -math.inf
    logits = [never, never, 0.0, never, 1.0, never]
    assert draw(logits, LOWEST) == 2
    assert draw(logits, HIGHEST) == 4
    for uniform in (LOWEST, 0.5, HIGHEST):
        assert draw(logits, uniform, top_k=1) == 4
        assert draw(logits, uniform, top_p=1e-9) == 4
        assert draw(logits, uniform, temperature=0.0) == 4


def test_a_token_far_down_the_tail_can_come() -> None:
    """A number in single precision would be rounded up to one and never reach the last tenth of a billionth."""
    logits = [0.0, math.log(1e-10)]
    assert draw(logits, 1 - 1e-11) == 1
    assert draw(logits, 1 - 1e-9) == 0


def test_more_top_k_than_tokens_keeps_all() -> None:
    assert draw([0.0, 0.0], HIGHEST, top_k=50) == 1


def test_rows_are_sampled_each_in_its_own_way() -> None:
    params = [SamplingParams(1, temperature=0.0), SamplingParams(1), SamplingParams(1, top_k=1, temperature=2.0)]
    logits = torch.tensor([[0.0, 2.0, 1.0]] * 3)
    tokens, every = draw_tokens(logits, params, [LOWEST, LOWEST, LOWEST])
    logprobs = every.gather(1, tokens[:, None])[:, 0]
    assert tokens.tolist() == [1, 0, 1]
    expected = [logits[0].log_softmax(-1)[1], logits[0].log_softmax(-1)[0], (logits[0] / 2).log_softmax(-1)[1]]
    assert torch.allclose(logprobs, torch.stack(expected))


def test_a_tie_of_the_greedy_choice_is_not_made_by_a_temperature() -> None:
    """Of two logits that only the division would make equal, the larger is chosen."""
    logits = [1.0, math.nextafter(1.0, 2.0) + 1e-7]
    assert draw(logits, LOWEST, temperature=0.0) == 1


@pytest.mark.parametrize("words", [2 * BLOCK, 3 * BLOCK + 7, 700])
def test_a_large_vocabulary_draws_the_token_where_the_sum_of_all_weights_passes_the_number(words: int) -> None:
    generator = torch.Generator().manual_seed(words)
    logits = torch.randn(40, words, generator=generator) * 3
    logits[:, :5] = logits[:, -3:] = -math.inf
    logits[0, BLOCK : 2 * BLOCK] = -math.inf
    uniform = [LOWEST, HIGHEST, *torch.rand(38, generator=generator, dtype=torch.float64).tolist()]
    # One row at a time, since a row that needs the sums of all weights would make every row use them.
    drawn = [draw_tokens(logits[row, None], [SamplingParams(1)], [uniform[row]]) for row in range(40)]
    tokens, logprobs = torch.cat([ids for ids, _ in drawn]), torch.cat([values for _, values in drawn])
    total = logprobs.double().exp().cumsum(-1)
    for row, (token, number) in enumerate(zip(tokens.tolist(), uniform, strict=True)):
        before = float(total[row, token - 1]) if token else 0.0
        assert before - 1e-6 <= number * float(total[row, -1]) <= float(total[row, token]) + 1e-6
        assert logprobs[row, token] > -math.inf


def test_logits_that_are_not_numbers_are_drawn_from_without_an_index_error() -> None:
    """The request that receives the token reports them."""
    tokens, logprobs = draw_tokens(torch.full((1, 2 * BLOCK), math.nan), [SamplingParams(1)], [0.5])
    assert math.isnan(float(logprobs[0, int(tokens[0])]))
