"""The loss once more, one token at a time, so that no part under test judges itself.

Each stands for a part of the same name and options; it takes one row, as the reference backend gives it.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch


def _together(tokens, level):
    """For each token, the positions of the policy's tokens that its ratio is about."""
    mask, turns = tokens.mask[0].tolist(), tokens.turn[0].tolist()
    for here, counts in enumerate(mask):
        if not counts:
            yield []
        elif level == "token":
            yield [here]
        else:
            yield [at for at, own in enumerate(mask) if own and (level == "sequence" or turns[at] == turns[here])]


def _row(values, like):
    """Numbers of one row as a tensor that has a gradient, be it zero."""
    return torch.stack([v if torch.is_tensor(v) else like.new_tensor(float(v)) for v in values])[None] + 0 * like


@dataclass
class Surrogate:
    """``ppo_clip``."""

    low: float = 0.2
    high: float = 0.28
    two_sided: float | None = None
    dual: float | None = None
    level: str = "token"
    needs = frozenset()
    policy_gradient = True

    def __call__(self, tokens):
        losses = []
        for here, members in enumerate(_together(tokens, self.level)):
            if not members:
                losses.append(0.0)
                continue
            ratio = torch.exp(sum(tokens.logp[0, at] - tokens.old[0, at] for at in members) / len(members))
            advantage = tokens.advantage[0, here].item()
            bounded = min(max(ratio.item(), 1 - self.low), 1 + self.high)
            if self.two_sided is not None and ratio.item() > self.two_sided:
                ratio = torch.tensor(self.two_sided, dtype=ratio.dtype)
            gain = ratio * advantage if ratio.item() * advantage <= bounded * advantage else bounded * advantage
            if self.dual is not None and advantage < 0 and gain < self.dual * advantage:
                gain = self.dual * advantage
            losses.append(-gain)
        return _row(losses, tokens.logp)


class LogProbability:
    """``reinforce``."""

    needs = frozenset()
    policy_gradient = True

    def __call__(self, tokens):
        return _row([-a * p for a, p in zip(tokens.advantage[0].tolist(), tokens.logp[0], strict=True)], tokens.logp)


@dataclass
class Divergence:
    """``kl``; the last three by the gradient that they must have."""

    coef: float
    estimator: str
    needs = frozenset()
    policy_gradient = False

    def __call__(self, tokens):
        losses = []
        own = tokens.mask[0].tolist()
        differences = (tokens.logp[0] - tokens.reference[0]).tolist()
        scores = zip(tokens.logp[0], tokens.old[0], tokens.reference[0], strict=True)
        for here, (logp, old, reference) in enumerate(scores):
            d = logp - reference
            k3 = math.exp(-d.item()) - 1 + d.item()
            match self.estimator:
                case "k1":
                    loss = d
                case "k2":
                    loss = d * d / 2
                case "k3":
                    loss = torch.exp(-d) - 1 + d
                case "k3+":  # the value of k3, and d times the gradient of the log-probability
                    loss = k3 + d.item() * (logp - logp.item())
                case "unbiased":  # the same times the ratio
                    ratio = math.exp(logp.item() - old.item())
                    loss = ratio * (k3 + d.item() * (logp - logp.item()))
                case "episode":  # the value of k1, and the differences from here to the end times the gradient
                    later = sum(one for one, counts in zip(differences[here:], own[here:], strict=True) if counts)
                    loss = d.item() + later * (logp - logp.item())
            losses.append(self.coef * loss)
        return _row(losses, tokens.logp)


@dataclass
class Uncertainty:
    """``entropy``."""

    coef: float
    needs = frozenset()
    policy_gradient = False

    def __call__(self, tokens):
        return -self.coef * tokens.entropy


@dataclass
class Values:
    """``rover``, of which only the token's own log-probability has a gradient."""

    rho: float
    needs = frozenset({"mean_logp"})
    policy_gradient = False

    def __call__(self, tokens):
        places = [at for at, own in enumerate(tokens.mask[0].tolist()) if own]
        losses = [0.0] * tokens.mask.shape[1]
        for number, here in enumerate(places):
            target = tokens.advantage[0, here].item()
            if number + 1 < len(places):
                after = places[number + 1]
                target += self.rho * (tokens.mean_logp[0, after] - tokens.old_mean_logp[0, after]).item()
            losses[here] = (self.rho * (tokens.logp[0, here] - tokens.old[0, here]) - target) ** 2
        return _row(losses, tokens.logp)


@dataclass
class Echoes:
    """``echo``: the environment's tokens that answer at least so many calls."""

    coef: float
    calls: int
    needs = frozenset({"environment"})
    policy_gradient = False

    def __call__(self, tokens):
        pairs = zip(tokens.logp[0], tokens.answered[0].tolist(), strict=True)
        return _row([-self.coef * p if calls >= self.calls else 0.0 for p, calls in pairs], tokens.logp)


@dataclass
class Contrast:
    """``carft``."""

    coef: float
    temperature: float
    needs = frozenset({"embedding"})
    policy_gradient = False

    def __call__(self, tokens):
        own = tokens.embedding[0]
        scores = []
        for other, what in zip(tokens.peers[0], tokens.relations[0].tolist(), strict=True):
            size = (own @ own) ** 0.5 * (other @ other) ** 0.5
            scores.append((what, torch.exp((own @ other) / size / self.temperature) if size else own.sum() * 0 + 1))
        wrong = sum(score for what, score in scores if what == -1)
        right = [-torch.log(score / (score + wrong)) for what, score in scores if what == 1]
        loss = self.coef * sum(right) / len(right) if right else 0.0
        return _row([loss] * tokens.logp.shape[1], tokens.logp)


@dataclass
class Dads:
    """``apo_dads``."""

    coef: float
    needs = frozenset({"reference"})
    policy_gradient = False

    def __call__(self, tokens):
        losses = Divergence(self.coef, "k3")(tokens)[0]
        weights = []
        for right, advantage in zip(tokens.columns["accuracy"][0].tolist(), tokens.advantage[0].tolist(), strict=True):
            wrong = 1 - right
            weights.append(1 - math.exp(-math.e * (1 - wrong)) if advantage > 0 and wrong not in (0, 1) else 1.0)
        return _row([w * loss for w, loss in zip(weights, losses, strict=True)], tokens.logp)


@dataclass
class Weights:
    """``none``, ``truncate``, ``mask`` and ``geometric``."""

    kind: str = "none"
    level: str = "token"
    low: float = 0.0
    high: float = math.inf
    needs = frozenset()

    def __call__(self, tokens):
        weights = []
        helped = tokens.columns.get("off_policy", torch.zeros_like(tokens.sampled))[0].tolist()
        for members in _together(tokens, self.level):
            ratio = 1.0
            for at in members:
                # What was drawn after another prompt says nothing of the engine.
                ratio *= 1.0 if helped[at] else math.exp(tokens.old[0, at].item() - tokens.sampled[0, at].item())
            if self.kind == "geometric":
                ratio = ratio ** (1 / max(len(members), 1))
            outside = not self.low <= ratio <= self.high
            weights.append({"none": 1.0, "truncate": min(ratio, self.high)}.get(self.kind, 0.0 if outside else ratio))
        return _row(weights, tokens.sampled)


@dataclass
class Mean:
    """``token_mean``, ``seq_mean``, ``prompt_mean`` and ``const_len``, of all rows there are."""

    kind: str
    length: int = 0

    def __call__(self, lengths, groups, ranks):
        rows, weights = [n for n in lengths if n], []
        for n, group in zip(lengths, groups, strict=True):
            same = sum(other for other, its in zip(lengths, groups, strict=True) if its == group)
            prompts = {its for other, its in zip(lengths, groups, strict=True) if other}
            divisor = {
                "token_mean": sum(rows),
                "seq_mean": len(rows) * n,
                "prompt_mean": len(prompts) * same,
                "const_len": len(rows) * self.length,
            }[self.kind]
            weights.append(1 / divisor if n else 0.0)
        return np.array(weights)
