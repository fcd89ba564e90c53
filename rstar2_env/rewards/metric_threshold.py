"""``metric_threshold``: rule rewards for the format and for a metric above a threshold (MT-R1-Zero, arXiv 2504.10160).

A correct format earns 1; a metric of the answer adds 2 if it is above the threshold and otherwise subtracts 1.5, so the
total is 3 or -0.5. With ``how="continuous"``, the metric itself is added instead, as in the authors' script
``main_grpo.sh``. With a broken format, or without an answer, no metric is computed; the score is then -1 - 2 = -3, as
in the authors' code. A correct format is exactly one answer in the notation of the environment; the authors' code
requires a ``<think>`` and a ``<translate>`` block.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions
from rstar2_env.core.options.parts import read_part
from rstar2_env.rewards.base import REWARDS, Need, RewardContext, problem_of
from rstar2_env.rewards.text_metrics import TEXT_METRICS, TextMetric


@dataclass(frozen=True)
class MetricThreshold(CheckedOptions):
    """1 for the format, plus 2 for a metric above its threshold, else minus 1.5 (MT-R1-Zero, arXiv 2504.10160).

    Use this component for answers that are texts, such as translations. The paper uses BLEU and COMET; COMET is a
    model, which your own code can load.

    Attributes:
        metric: ``"bleu"`` or ``"word_f1"``; or a function of the answer and the gold answer, ``./mine.py:comet``.
        how: ``"discrete"`` compares the metric with the threshold; ``"continuous"`` adds the metric.
        threshold: Value that the metric must exceed, with ``"discrete"``.
        above: Amount that is added for a metric above the threshold.
        below: Amount that is added for a metric at or below the threshold.
        broken: Amount that is added to the format's -1 if the format is broken or the answer is missing.
    """

    metric: Any = "bleu"
    how: Literal["discrete", "continuous"] = "discrete"
    threshold: float = 0.3
    above: float = 2.0
    below: float = -1.5
    broken: float = -2.0
    _metric: TextMetric = field(init=False, repr=False)

    needs: ClassVar[frozenset[Need]] = frozenset({"problem"})

    def __post_init__(self) -> None:
        """Look up the metric.

        Raises:
            ConfigurationError: An option is not valid.
            UnknownNameError: The metric does not exist.
        """
        super().__post_init__()
        part = read_part(self.metric, TEXT_METRICS.kind)
        object.__setattr__(self, "_metric", part.made_by or TEXT_METRICS.get(part.name))

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return the sum of the scores for format and metric; recipes use this component instead of ``return``."""
        gold = problem_of(ctx, "metric_threshold").answer
        if episode.answer_tags != 1 or episode.answer is None:
            return self.broken - 1.0
        metric = self._metric(episode.answer, gold)
        if self.how == "continuous":
            return 1.0 + metric
        return 1.0 + (self.above if metric > self.threshold else self.below)


REWARDS.register("metric_threshold", MetricThreshold)
