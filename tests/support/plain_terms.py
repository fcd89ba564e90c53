"""Policy gradients once more, a token at a time, and the correction that drops rows; as in ``plain_loss``."""

import math
from dataclasses import dataclass

import torch
from plain_loss import _row as row_of
from plain_loss import _together as together

FAR = {"tv": 0.15, "kl": 0.05}


class EachToken:
    """A term of which a token's loss depends on that token alone."""

    needs = frozenset()
    policy_gradient = True
    anchor = "old"

    @property
    def corrected(self):
        return self.anchor == "old"

    def __call__(self, tokens):
        against = tokens.old if self.anchor == "old" else tokens.sampled
        losses = []
        for here, counts in enumerate(tokens.mask[0].tolist()):
            chosen = (tokens.logp[0, here], against[0, here].item(), tokens.advantage[0, here].item())
            losses.append(self.of(*chosen) if counts else 0.0)
        return row_of(losses, tokens.logp)


@dataclass
class BoundedWeight(EachToken):
    """``cispo``."""

    low: float = math.inf
    high: float = 4.0
    anchor: str = "old"

    def of(self, logp, against, advantage):
        weight = math.exp(logp.item() - against)
        return -min(max(weight, 1 - self.low), 1 + self.high) * advantage * logp


@dataclass
class NearInProbability(EachToken):
    """``dppo``."""

    divergence: str = "tv"
    low: float | None = None
    high: float | None = None
    cap: float = 20.0
    either: bool = False
    anchor: str = "sampled"

    def of(self, logp, against, advantage):
        pi, mu = math.exp(logp.item()), math.exp(against)
        if self.divergence == "tv":
            apart = abs(pi - mu)
        else:
            apart = mu * math.log(mu / pi) + (1 - mu) * math.log((1 - mu) / (1 - pi))
        bound = self.high if advantage > 0 else self.low
        bound = FAR[self.divergence] if bound is None else bound
        further = pi > mu if advantage > 0 else pi < mu
        if apart > bound and (further or self.either):
            return 0 * logp
        return -min(pi / mu, self.cap) * advantage * logp


@dataclass
class Held(EachToken):
    """``dro``."""

    beta: float = 0.05
    anchor: str = "sampled"
    needs = frozenset()
    policy_gradient = False

    def of(self, logp, against, advantage):
        return -(advantage * logp - self.beta / 2 * (logp - against) ** 2)


@dataclass
class WithItsFuture:
    """``fipo``."""

    half_life: float = 32.0
    below: float = 0.2
    above: float = 0.2
    safety: float | None = 4.0
    low: float = 0.2
    high: float = 0.28
    dual: float | None = 10.0
    needs = frozenset()
    policy_gradient = True

    def __call__(self, tokens):
        own = [at for at, counts in enumerate(tokens.mask[0].tolist()) if counts]
        losses = [0.0] * tokens.mask.shape[1]
        for place, here in enumerate(own):
            future = 0.0
            for distance, later in enumerate(own[place:]):
                moved = tokens.logp[0, later].item() - tokens.old[0, later].item()
                if self.dual is None or math.exp(moved) <= self.dual:
                    future += 0.5 ** (distance / self.half_life) * moved
            weight = min(max(math.exp(future), 1 - self.below), 1 + self.above)
            ratio = torch.exp(tokens.logp[0, here] - tokens.old[0, here])
            advantage = tokens.advantage[0, here].item()
            if self.safety is not None and advantage < 0 and ratio.item() > self.safety:
                weight = min(max(weight, 0.8), 1.0)
            bounded = min(max(ratio.item(), 1 - self.low), 1 + self.high) * advantage
            gain = ratio * advantage if ratio.item() * advantage <= bounded else bounded
            if self.dual is not None and advantage < 0 and gain < self.dual * advantage:
                gain = self.dual * advantage
            losses[here] = -weight * gain
        return row_of(losses, tokens.logp)


@dataclass
class GeometricMean:
    """``gmpo``."""

    low: float = 0.4
    high: float = 0.4
    level: str = "sequence"
    needs = frozenset()
    policy_gradient = True

    def __call__(self, tokens):
        def clipped(at):
            moved = tokens.logp[0, at] - tokens.old[0, at]
            if tokens.advantage[0, at] > 0:
                return moved if moved.item() <= self.high else moved.detach() * 0 + self.high
            return moved if moved.item() >= -self.low else moved.detach() * 0 - self.low

        losses = []
        for here, members in enumerate(together(tokens, self.level)):
            if not members:
                losses.append(0.0)
                continue
            mean = sum(clipped(at) for at in members) / len(members)
            losses.append(-tokens.advantage[0, here].item() * torch.exp(mean))
        return row_of(losses, tokens.logp)


@dataclass
class TokenForm:
    """``ppo_clip`` with ``token_gradient``."""

    low: float = 0.2
    high: float = 0.28
    level: str = "sequence"
    needs = frozenset()
    policy_gradient = True

    def __call__(self, tokens):
        losses = []
        for here, members in enumerate(together(tokens, self.level)):
            if not members:
                losses.append(0.0)
                continue
            moved = sum(tokens.logp[0, at].item() - tokens.old[0, at].item() for at in members) / len(members)
            value, advantage = math.exp(moved), tokens.advantage[0, here].item()
            bounded = min(max(value, 1 - self.low), 1 + self.high)
            if value * advantage <= bounded * advantage:
                own = tokens.logp[0, here]
                losses.append(-value * (1 + own - own.item()) * advantage)
            else:
                losses.append(-bounded * advantage)
        return row_of(losses, tokens.logp)


@dataclass
class TwoSided(EachToken):
    """``rollout_is``."""

    low: float = 0.2
    high: float = 0.2
    anchor = "sampled"

    def of(self, logp, against, advantage):
        ratio = math.exp(logp.item() - against)
        return -ratio * advantage * logp if 1 - self.low < ratio < 1 + self.high else 0 * logp


@dataclass
class SoftGate(EachToken):
    """``sapo``."""

    positive: float = 1.0
    negative: float = 1.05

    def of(self, logp, against, advantage):
        tau = self.positive if advantage > 0 else self.negative
        return -4 / tau / (1 + torch.exp(-tau * (torch.exp(logp - against) - 1))) * advantage


@dataclass
class Tapered:
    """``topr``."""

    level: str = "sequence"
    anchor: str = "sampled"
    needs = frozenset()
    policy_gradient = True

    @property
    def corrected(self):
        return self.anchor == "old"

    def __call__(self, tokens):
        against = tokens.old if self.anchor == "old" else tokens.sampled
        losses = []
        for here, members in enumerate(together(tokens, self.level)):
            ratio = math.exp(sum(tokens.logp[0, at].item() - against[0, at].item() for at in members))
            advantage = tokens.advantage[0, here].item()
            weight = min(ratio, 1.0) if advantage < 0 else 1.0
            losses.append(-weight * advantage * tokens.logp[0, here] if members else 0.0)
        return row_of(losses, tokens.logp)


@dataclass
class Reshaped:
    """``vespo``."""

    k_positive: float = 2.0
    decay_positive: float = 3.0
    k_negative: float = 3.0
    decay_negative: float = 2.0
    level: str = "sequence"
    needs = frozenset()
    policy_gradient = True
    corrected = False

    def __call__(self, tokens):
        losses = []
        for here, members in enumerate(together(tokens, self.level)):
            w = 1.0
            for at in members:
                w *= math.exp(tokens.logp[0, at].item() - tokens.sampled[0, at].item())
            advantage = tokens.advantage[0, here].item()
            k, decay = (
                (self.k_positive, self.decay_positive) if advantage > 0 else (self.k_negative, self.decay_negative)
            )
            phi = w**k * math.exp(decay) * math.exp(-decay * w)
            losses.append(-phi * advantage * tokens.logp[0, here] if members else 0.0)
        return row_of(losses, tokens.logp)


@dataclass
class OffPolicy:
    """``opsm``, alone or before ``truncate`` at 1.1."""

    delta: float = 0.5
    anchor: str = "sampled"
    level: str = "sequence"
    cap: float | None = None
    needs = frozenset()

    def __call__(self, tokens):
        against = tokens.old if self.anchor == "old" else tokens.sampled
        weights = []
        for here, members in enumerate(together(tokens, self.level)):
            away = sum(against[0, at].item() - tokens.logp[0, at].item() for at in members) / max(len(members), 1)
            ratio = 1.0
            if self.cap is not None:
                ratio = min(math.exp(tokens.old[0, here].item() - tokens.sampled[0, here].item()), self.cap)
            weights.append(0.0 if tokens.advantage[0, here] < 0 and away > self.delta else ratio)
        return row_of(weights, tokens.sampled)
