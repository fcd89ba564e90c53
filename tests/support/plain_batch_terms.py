"""The terms that compare tokens with others of the optimizer batch once more, as in ``plain_loss``.

They prepare a batch that is on one process, as the reference backend's is.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from plain_loss import _row as row_of
from plain_terms import EachToken


@dataclass
class ByCovariance:
    """``clip_cov`` and ``kl_cov``: which tokens they choose, of a batch that is on one process."""

    share: float = 2e-4

    def products(self, batch):
        mean = [float(np.mean(values)) for values in (batch.logp, batch.advantage)]
        return [(p - mean[0]) * (a - mean[1]) for p, a in zip(batch.logp, batch.advantage, strict=True)]

    def count(self, batch):
        return max(1, int(self.share * len(batch.logp)))

    def in_order(self, batch):
        """Positions by group, and in a group as they stand."""
        return sorted(range(len(batch.logp)), key=lambda at: (batch.groups[batch.row[at]], at))


@dataclass
class WithoutSome(ByCovariance):
    """``clip_cov``."""

    least: float = 1.0
    most: float = 5.0
    low: float = 0.2
    high: float = 0.2
    needs = frozenset()
    policy_gradient = True

    def prepare(self, batch, ranks, rng):
        products, may = self.products(batch), []
        for at in self.in_order(batch):
            ratio, advantage = math.exp(batch.logp[at] - batch.old[at]), batch.advantage[at]
            clipped = ratio > 1 + self.high if advantage > 0 else advantage < 0 and ratio < 1 - self.low
            if self.least < products[at] < self.most and not clipped:
                may.append(at)
        column = np.zeros(len(batch.logp))
        for number in rng.choice(len(may), min(len(may), self.count(batch)), replace=False):
            column[may[number]] = 1
        return {"without": column}

    def __call__(self, tokens):
        losses = []
        for here, counts in enumerate(tokens.mask[0].tolist()):
            ratio = torch.exp(tokens.logp[0, here] - tokens.old[0, here])
            advantage = tokens.advantage[0, here].item()
            bounded = min(max(ratio.item(), 1 - self.low), 1 + self.high) * advantage
            gain = ratio * advantage if ratio.item() * advantage <= bounded else bounded
            losses.append(-gain if counts and not tokens.columns["without"][0, here] else 0.0)
        return row_of(losses, tokens.logp)


@dataclass
class HoldsSome(ByCovariance):
    """``kl_cov``."""

    coef: float = 1.0
    needs = frozenset()
    policy_gradient = False

    def prepare(self, batch, ranks, rng):
        products = self.products(batch)
        held = sorted(self.in_order(batch), key=lambda at: -products[at])[: self.count(batch)]
        return {"held": np.array([float(at in held) for at in range(len(products))])}

    def __call__(self, tokens):
        held = tokens.columns["held"][0].tolist()
        moved = [logp - old for logp, old in zip(tokens.logp[0], tokens.old[0], strict=True)]
        return row_of(
            [self.coef * np.sign(one.item()) * one if own else 0.0 for one, own in zip(moved, held, strict=True)],
            tokens.logp,
        )


@dataclass
class SecondMoment(EachToken):
    """``m2po``."""

    threshold: float = 0.04
    of: str = "all"
    anchor: str = "sampled"

    def prepare(self, batch, ranks, rng):
        against = batch.old if self.anchor == "old" else batch.sampled
        moved = (batch.logp - against).tolist()
        rest = [
            at
            for at, (one, advantage) in enumerate(zip(moved, batch.advantage, strict=True))
            if self.of == "all" or one * advantage > 0
        ]
        dropped = np.zeros(len(moved))
        while rest and sum(moved[at] ** 2 for at in rest) / len(rest) >= self.threshold:
            largest = max(rest, key=lambda at: moved[at] ** 2)
            rest.remove(largest)
            dropped[largest] = 1
        return {"outlier": dropped}

    def __call__(self, tokens):
        against = tokens.old if self.anchor == "old" else tokens.sampled
        losses = []
        for here, counts in enumerate(tokens.mask[0].tolist()):
            loss = -torch.exp(tokens.logp[0, here] - against[0, here]) * tokens.advantage[0, here].item()
            losses.append(loss if counts and not tokens.columns["outlier"][0, here] else 0.0)
        return row_of(losses, tokens.logp)


@dataclass
class LeastSquares:
    """``gvpo``, by the derivative that its formula has."""

    beta: float = 0.1
    needs = frozenset()
    policy_gradient = False

    def prepare(self, batch, ranks, rng):
        rows = range(len(batch.groups))
        implied = [self.beta * (batch.logp - batch.old)[batch.row == row].sum() for row in rows]
        advantage = [batch.advantage[batch.row == row].mean() if (batch.row == row).any() else 0.0 for row in rows]
        columns = {name: np.zeros(len(batch.logp)) for name in ("loss", "slope")}
        for row in rows:
            group = [at for at in rows if batch.groups[at] == batch.groups[row] and (batch.row == at).any()]
            if len(group) < 2 or row not in group:
                continue
            mean = sum(implied[at] for at in group) / len(group)
            apart = {at: implied[at] - mean - advantage[at] for at in group}
            # d/dR_i of sum_j (R_j - mean R - A_j)^2 / 2: the row's own distance less the mean of all.
            slope = apart[row] - sum(apart.values()) / len(group)
            own = batch.row == row
            columns["loss"][own] = apart[row] ** 2 / 2 / (len(group) - 1) / own.sum()
            columns["slope"][own] = slope / (len(group) - 1) * self.beta
        return columns

    def __call__(self, tokens):
        loss, slope = tokens.columns["loss"], tokens.columns["slope"]
        return loss + slope * (tokens.logp - tokens.logp.detach())
