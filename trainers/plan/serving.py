"""``serving_seconds``: the time that engines on dedicated devices need to play episodes.

The cache uses all memory that the bfloat16 weights leave free, since no training runs on these devices. Episodes run in
waves (``rollout_time``). Not covered: loading the weights, and the tools of episodes.
"""

from __future__ import annotations

from .architecture import Architecture
from .assumptions import Assumptions
from .device import Device
from .placement import usable
from .rollout_time import lengths_of, rollout_seconds

_WIDTH = 2
_FOLLOWED = 4096
"""Maximum number of simulated episodes per engine; the time of more episodes is extrapolated."""


def serving_seconds(
    model: Architecture,
    device: Device,
    engines: int,
    episodes: int,
    budget: int,
    mean: int,
    assume: Assumptions,
    *,
    tensor_parallel: int = 1,
    in_flight: int | None = None,
) -> float | None:
    """Return the seconds that engines need to play episodes; ``None`` if the model and one episode do not fit.

    Args:
        model: Sizes of the model.
        device: One device, whose speed is known.
        engines: Number of engines, each on its own devices.
        episodes: Number of episodes on all engines.
        budget: Maximum number of tokens of an episode after its prompt.
        mean: Mean number of tokens of an episode after its prompt.
        assume: Assumptions about hardware, software and episodes.
        tensor_parallel: Number of devices per engine.
        in_flight: Maximum number of concurrent episodes on all engines; ``None`` if only the caches limit it.

    Raises:
        ValueError: The device's speed is unknown.
    """
    room = usable(device, assume) - _WIDTH * model.parameters / tensor_parallel
    cache = int(room * tensor_parallel / model.cache_bytes(_WIDTH))
    if cache < budget + assume.prompt_tokens:
        return None
    each = -(-episodes // engines)
    followed = min(each, _FOLLOWED)
    lengths = lengths_of(followed, mean, budget, assume.spread, among=followed * engines)
    most = followed if in_flight is None else max(1, min(followed, in_flight // engines))
    play = rollout_seconds(model, device, lengths, cache, assume, tensor_parallel=tensor_parallel, max_rows=most)
    return play.seconds * each / followed
