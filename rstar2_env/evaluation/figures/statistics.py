"""Statistics of repeated samples: pass@k, avg@k and maj@k of a problem, and bootstrap intervals over problems.

Covered: unbiased estimates from n samples of one problem, intervals of a mean or of a share over problems, and the
paired comparison of two runs. Not covered: the list of figures (``rstar2_env.core.episode_metrics``).

The bootstrap draws whole problems, because samples of the same problem are not independent of one another.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.row import FloatArray

RESAMPLES = 2000
"""Default number of draws of a bootstrap or a permutation test."""

_CELLS = 1 << 21
"""Maximum number of elements of an array in a bootstrap; it bounds memory for any number of problems."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its confidence interval.

    Attributes:
        value: The estimate; NaN without data.
        low: Lower end; NaN with fewer than two problems, which are too few for an interval.
        high: Upper end; NaN if ``low`` is NaN.
        level: Confidence level of the interval, between 0 and 1.
    """

    value: float
    low: float
    high: float
    level: float = 0.95


def pass_at_k(n: int, correct: int, k: int) -> float:
    """Estimate, without bias, the probability that at least one of k samples is right, from n samples of a problem.

    ``1 - C(n - correct, k) / C(n, k)`` (Chen et al., Evaluating Large Language Models Trained on Code,
    arXiv 2107.03374, section 2.1), as a product that does not overflow.

    Args:
        n: Number of samples of the problem.
        correct: Number of right samples.
        k: Number of samples of which at least one must be right, at most n.

    Raises:
        ConfigurationError: ``k`` is not between 1 and n, or ``correct`` not between 0 and n.
    """
    _check(n, correct, k)
    if n - correct < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / i for i in range(n - correct + 1, n + 1))


def avg_at_k(n: int, correct: int, k: int) -> float:
    """Expected share of right samples among k samples, from n samples of a problem.

    The result is ``correct / n`` for every k.

    Args:
        n: Number of samples of the problem.
        correct: Number of right samples.
        k: Number of samples for which the mean is reported, at most n; it does not change the result.

    Raises:
        ConfigurationError: ``k`` is not between 1 and n, or ``correct`` not between 0 and n.
    """
    _check(n, correct, k)
    return correct / n


def maj_at_k(answers: Sequence[Hashable | None], correct: Sequence[bool], k: int) -> float:
    """Probability that the most frequent answer of k samples is right, from n samples of a problem.

    The result is exact: it is the mean over all subsets of k samples. If several answers of a subset are equally
    frequent, they share the vote (Wang et al., Self-Consistency Improves Chain of Thought Reasoning, arXiv 2203.11171,
    section 2, defines the vote). The number of votes for each answer has a binomial distribution with probability
    ``k/n``, conditional on k votes in total, so sums over subsets are computed as products of polynomials.

    Args:
        answers: The answer of each sample. Equal answers vote together; ``None`` is a missing answer without a vote.
        correct: Whether each sample is right. Right answers vote together even if they are written differently, because
            each equals the gold answer.
        k: Number of samples that vote, at most n.

    Raises:
        ConfigurationError: ``k`` is not between 1 and n, or the two sequences differ in length.
    """
    n = len(answers)
    if len(correct) != n:
        raise ConfigurationError(f"Expected one verdict per answer; got {n} answers and {len(correct)} verdicts.")
    right = sum(1 for answer, good in zip(answers, correct, strict=True) if good and answer is not None)
    _check(n, right, k)
    wrong = Counter(answer for answer, good in zip(answers, correct, strict=True) if not good and answer is not None)
    if not right or not wrong:
        # Without a wrong answer, one vote for the right answer is enough.
        return pass_at_k(n, right, k)
    chance = k / n
    votes = _binomial(right, chance, k)
    found = 0.0
    for most in range(1, min(right, k) + 1):
        rivals = [count for count in wrong.values() if count >= most]
        if most * (1 + len(rivals)) + n - right - sum(rivals) < k:
            continue  # with at most `most` votes for each answer, there cannot be k votes
        # Answers that are too rare to get `most` votes need no limit, and neither do samples without an answer.
        others = _binomial(n - right - sum(rivals), chance, k)
        ties = np.zeros((min(len(rivals), k // most) + 1, k + 1))
        ties[0, : len(others)] = others
        for count in rivals:
            ties = _with_rival(ties, _binomial(count, chance, k), most)
        shared: FloatArray = 1.0 / np.arange(1, len(ties) + 1)
        found += float(votes[most] * (shared @ ties[:, k - most]))
    return min(1.0, found / float(_binomial(n, chance, k)[k]))


def bootstrap(values: FloatArray, *, seed: int = 0, resamples: int = RESAMPLES, level: float = 0.95) -> Interval:
    """Mean over problems, with the percentile interval of the bootstrap.

    Efron and Tibshirani, An Introduction to the Bootstrap (1993), section 13.3. If every problem has the same value,
    the interval has no width, however few problems there are; ``wilson`` gives an interval for shares.

    Args:
        values: One number per problem, of shape (problems,); a problem with NaN is left out.
        seed: Seed of the draws.
        resamples: Number of draws.
        level: Level of the interval, between 0 and 1.

    Raises:
        ConfigurationError: ``values`` does not have one dimension, or an option is out of its range.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1:
        raise ConfigurationError(f"Expected one number per problem, of shape (problems,); got shape {values.shape}.")
    has: FloatArray = np.isfinite(values).astype(np.float64)
    over = np.where(has > 0, values, 0.0)
    return bootstrap_shares(over[:, None], has[:, None], seed=seed, resamples=resamples, level=level)[0]


def bootstrap_shares(
    over: FloatArray, under: FloatArray, *, seed: int = 0, resamples: int = RESAMPLES, level: float = 0.95
) -> list[Interval]:
    """Ratios of two sums over problems, such as errors over calls, with percentile intervals of the bootstrap.

    All ratios use the same draws of problems.

    Args:
        over: Numerators, of shape (problems, ratios).
        under: Denominators, of the same shape, none below 0; 0 leaves a problem out of a ratio.
        seed: Seed of the draws.
        resamples: Number of draws.
        level: Level of the intervals, between 0 and 1.

    Returns:
        One interval per ratio.

    Raises:
        ConfigurationError: The shapes differ, the arrays do not have two dimensions, or an option is out of its range.
    """
    over, under = np.asarray(over, dtype=np.float64), np.asarray(under, dtype=np.float64)
    if over.ndim != 2 or over.shape != under.shape:
        raise ConfigurationError(
            f"Expected one number per problem, in arrays of equal shape; got shapes {over.shape} and {under.shape}."
        )
    _check_draws(resamples, level)
    problems, figures = over.shape
    columns = np.concatenate([over, under], axis=1)
    drawn = np.empty((resamples, 2 * figures))
    at = 0
    for counts in _draws(problems, resamples, np.random.default_rng(seed)):
        drawn[at : at + len(counts)] = counts @ columns
        at += len(counts)
    found = []
    for figure in range(figures):
        above, below = drawn[:, figure], drawn[:, figures + figure]
        total = under[:, figure].sum()
        value = float(over[:, figure].sum() / total) if total > 0 else math.nan
        low = high = math.nan
        if np.count_nonzero(under[:, figure]) > 1:
            # Leave out draws whose denominator is 0.
            shares = above[below > 0] / below[below > 0]
            low, high = (float(end) for end in np.quantile(shares, [(1 - level) / 2, (1 + level) / 2]))
        found.append(Interval(value, low, high, level))
    return found


def wilson(value: float, trials: float, *, level: float = 0.95) -> Interval:
    """Return the score interval of a share (E. B. Wilson, Journal of the American Statistical Association 22, 1927).

    The interval has two different ends even if the share is 0 or 1: for 0 of 8 they are 0 and 0.324.

    Args:
        value: The observed share, from 0 to 1.
        trials: Number of independent observations, above 0; for observations that are not independent, the number of
            independent ones that would have the same standard error (see ``effective_trials``).
        level: Level of the interval, between 0 and 1.

    Raises:
        ConfigurationError: The value is not a share, there is no observation, or the level is out of its range.
    """
    _check_draws(1, level)
    if not 0.0 <= value <= 1.0 or not trials > 0:
        raise ConfigurationError(
            f"Expected a share from 0 to 1 and at least one observation; got the share {value} of {trials} "
            "observations."
        )
    z = NormalDist().inv_cdf((1.0 + level) / 2)
    scale = 1.0 + z * z / trials
    middle = (value + z * z / (2 * trials)) / scale
    reach = z / scale * math.sqrt(value * (1.0 - value) / trials + z * z / (4 * trials * trials))
    low, high = max(0.0, middle - reach), min(1.0, middle + reach)
    return Interval(value, 0.0 if value == 0.0 else low, 1.0 if value == 1.0 else high, level)


def effective_trials(value: float, error: float, count: float, clusters: float) -> float:
    """Return the number of independent observations that would give the standard error of a clustered share.

    It is ``value * (1 - value) / error ** 2`` (L. Kish, Survey Sampling, 1965, section 8.2), at most the number of
    observations. If the share is 0 or 1, the effect of the clusters cannot be estimated, so each cluster counts once.

    Args:
        value: The share, from 0 to 1.
        error: Standard error of the share.
        count: Number of observations.
        clusters: Number of clusters, such as problems.
    """
    if value in (0.0, 1.0):
        return clusters
    return min(count, value * (1.0 - value) / error**2) if error else count


def paired(
    a: FloatArray, b: FloatArray, *, seed: int = 0, resamples: int = RESAMPLES, level: float = 0.95
) -> tuple[Interval, float]:
    """Return the mean difference of two runs, paired by problem, and its p-value.

    The p-value comes from the permutation test of matched pairs, which flips the signs of the problems' differences
    (Good, Permutation, Parametric and Bootstrap Tests of Hypotheses, 3rd edition, section 3.7). If there are at most
    ``resamples`` combinations of signs, all are used; otherwise, the observed combination and ``resamples`` random
    combinations are used.

    Args:
        a: One number per problem, of shape (problems,).
        b: The numbers of the other run, in the same order of problems. A problem with NaN in ``a`` or ``b`` is left
            out.
        seed: Seed of the draws.
        resamples: Number of draws, for the interval and for the test.
        level: Level of the interval, between 0 and 1.

    Returns:
        The mean of ``b - a`` over problems with its bootstrap interval, and the two-sided p-value: 1.0 if no problem
        differs.

    Raises:
        ConfigurationError: The shapes differ, the arrays do not have one dimension, or an option is out of its range.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ConfigurationError(
            f"Expected one number per problem from both runs, for the same problems; got shapes {a.shape} and "
            f"{b.shape}."
        )
    difference: FloatArray = b - a
    interval = bootstrap(difference, seed=seed, resamples=resamples, level=level)
    differing = difference[np.isfinite(difference) & (difference != 0.0)]
    m = len(differing)
    if not m:
        return interval, 1.0
    # A sum that is smaller than the observed one only by rounding counts as equally large.
    observed = abs(float(differing.sum())) * (1 - 1e-12)
    if 2**m <= resamples:
        signs = 1.0 - 2.0 * ((np.arange(2**m)[:, None] >> np.arange(m)) & 1)
        return interval, float(np.mean(np.abs(signs @ differing) >= observed))
    rng = np.random.default_rng(seed)
    extreme = 0
    for rows in _chunks(m, resamples):
        signs = 1.0 - 2.0 * rng.integers(0, 2, size=(rows, m), dtype=np.int8)
        extreme += int(np.count_nonzero(np.abs(signs @ differing) >= observed))
    return interval, (1 + extreme) / (1 + resamples)


def _check(n: int, correct: int, k: int) -> None:
    if not 1 <= k <= n:
        raise ConfigurationError(f"k must be between 1 and {n}, the number of samples of a problem; got {k}.")
    if not 0 <= correct <= n:
        raise ConfigurationError(
            f"The number of correct samples must be between 0 and {n}, the number of samples; got {correct}."
        )


def _check_draws(resamples: int, level: float) -> None:
    if resamples < 1:
        raise ConfigurationError(f"The number of resamples must be at least 1; got {resamples}.", option="resamples")
    if not 0.0 < level < 1.0:
        raise ConfigurationError(f"The confidence level must be between 0 and 1; got {level}.", option="level")


def _binomial(n: int, chance: float, most: int) -> FloatArray:
    """Return the probabilities of 0 to min(n, most) successes in n trials, each with probability ``chance``."""
    if chance >= 1.0:
        found = np.zeros(min(n, most) + 1)
        if n <= most:
            found[n] = 1.0
        return found
    yes, no = math.log(chance), math.log1p(-chance)
    return np.array([
        math.exp(
            math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * yes + (n - i) * no
        )
        for i in range(min(n, most) + 1)
    ])  # fmt: skip


def _with_rival(ties: FloatArray, votes: FloatArray, most: int) -> FloatArray:
    """Add one rival of the right answer, a wrong answer with at most ``most`` votes, to ``ties``; return the new table.

    Entry (i, v) of ``ties`` is the probability that i of the included rivals have exactly ``most`` votes each, and that
    v votes in total go to the included rivals, to rarer answers and to samples without an answer. ``votes[n]`` is the
    probability that the new rival has n votes.
    """
    k = ties.shape[1] - 1
    found = np.zeros_like(ties)
    for number in range(min(most, len(votes) - 1) + 1):
        added = votes[number] * ties[:, : k + 1 - number]
        if number < most:
            found[:, number:] += added
        else:
            found[1:, number:] += added[:-1]
    return found


def _draws(problems: int, resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield the number of times that each problem is drawn, in arrays of shape (rows, problems).

    The arrays have ``resamples`` rows in total, one for each bootstrap sample.
    """
    for rows in _chunks(problems, resamples):
        counts = np.empty((rows, problems))
        for row in range(rows):
            drawn = rng.integers(0, problems, size=problems) if problems else np.empty(0, dtype=np.int64)
            counts[row] = np.bincount(drawn, minlength=problems)
        yield counts


def _chunks(width: int, rows: int) -> Iterator[int]:
    step = max(1, _CELLS // max(1, width))
    for start in range(0, rows, step):
        yield min(step, rows - start)
