"""``serving_seconds``: how long engines on dedicated devices need to play episodes.

The caches use all memory that the bfloat16 weights leave, since nothing trains there, and episodes run in waves
(``rollout_time``). Not covered: loading the weights, and the tools of episodes.
"""

from __future__ import annotations

from .architecture import Architecture
from .assumptions import Assumptions
from .device import Device
from .placement import usable
from .rollout_time import lengths_of, rollout_seconds

_WIDTH = 2
_FOLLOWED = 4096
"""Most episodes of each engine of which every one is followed: as many as fill it a dozen times are enough."""


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
    """Return the seconds in which engines play episodes; ``None`` if a model and one episode do not fit.

    Args:
        model: The model.
        device: One device, whose speed is known.
        engines: Engines, each with devices of its own, among which the episodes are divided.
        episodes: Episodes of all of them.
        budget: Tokens that an episode may have after its prompt.
        mean: Tokens that it has on average.
        assume: The assumptions.
        tensor_parallel: Devices of one engine.
        in_flight: Episodes that all engines play at once, at most; ``None`` is what their caches hold.

    Raises:
        ValueError: The device's speed is not known.
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
