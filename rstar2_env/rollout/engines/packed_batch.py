"""Runs the requests of ``TransformersEngine`` by continuous batching, with one forward pass per step.

A pass contains the newest token of every generating request and the prompts of new requests, packed one after the other
(``attention.py``). Each sequence has a slot of the cache and keeps it when its request ends, so the next turn of an
episode continues in the same slot without a copy. If a prompt shares a prefix with another sequence, the prefix is
copied, and only the rest of the prompt is computed.

The total size of the slots, unused token positions included, is limited. When the limit is reached, sequences that no
request uses are dropped first; then the newest requests are preempted and computed again later. Not covered: keeping
sequences whose keys depend on the length of the whole sequence.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from rstar2_env.rollout.engine import FinishReason
from rstar2_env.rollout.engines.attention import Pack, TokenRun, count_alone, packed
from rstar2_env.rollout.engines.batch import Finish, Request, RunningBatch
from rstar2_env.rollout.engines.prefix import CachedSequence, Key, PrefixIndex, key_of
from rstar2_env.rollout.engines.slots import SlotCache, reusable

MAX_DEAD = 0.25
"""Maximum share of unused slots among the slots that attention reads. Above it, running requests are moved to the first
slots, since that costs less than reading the unused ones."""

MIN_REUSE = 8
"""Minimum length, in tokens, of a cached prefix that is copied; a shorter one is cheaper to compute again."""

FEW_DEAD = 8
"""Number of unused slots that attention may always read: up to this number, no requests are moved."""

OLD = 1
"""A kept sequence is old if more than this number of requests per slot of the cache have begun since its last use: its
episode has most likely ended. Old sequences are dropped before the cache grows."""

COLUMNS = 16
"""The number of columns (token positions per slot) is rounded up to a multiple of this number."""

SPARE_COLUMNS = 32
"""Additional token positions of a new slot after its prompt, so that no buffer grows for the first generated tokens."""


@dataclass(eq=False)
class _Start:
    """A new request, and the cached sequence whose keys and values it reuses.

    Attributes:
        request: The new request.
        key: Tokens of the request, packed by ``key_of``.
        source: The sequence whose cache the request reuses; ``None`` if it reuses none.
        known: Number of tokens whose keys and values the request reuses.
        whole: Whether the request takes over the slot of ``source`` instead of copying its cache.
    """

    request: Request
    key: Key
    source: CachedSequence | Request | None = None
    known: int = 0
    whole: bool = False


class PackedBatch(RunningBatch):
    """A batch of requests that new requests can join at any step; it implements ``RunningBatch``.

    Args:
        model: A causal language model for which ``can_pack`` and ``supports`` hold.
        max_prefill_tokens: Maximum number of prompt tokens in one forward pass; longer prompts take several passes.
        max_tokens: Maximum number of tokens in all slots together, unused columns included; a single request runs
            even if it needs more.
        keep: Whether to keep the caches of ended requests.
        finish: Returns why a request has ended; ``None`` if it continues.
    """

    joins = True

    def __init__(
        self, model: PreTrainedModel, max_prefill_tokens: int, max_tokens: int, *, keep: bool, finish: Finish
    ) -> None:
        super().__init__(model, max_prefill_tokens, max_tokens, finish)
        self._keeps = keep and reusable(model.config)
        self._admitted = 0
        self._running: PrefixIndex[Request] = PrefixIndex()
        self._free: list[int] = []
        self.live: list[Request] = []
        self._cache = SlotCache(model.config)
        self._reset()

    @property
    def bytes(self) -> int:
        """Size of the key-value cache in bytes."""
        return self._cache.bytes

    def clear(self) -> None:
        """Remove all requests, and free all caches."""
        self.live = []
        self._running.clear()
        self.pool.clear()
        self._reset()

    def forget(self) -> None:
        """Drop the caches of all ended requests; the caches of running requests are dropped when the requests end."""
        for slot in self.pool.clear():
            self._free_slot(slot)
        self._running.clear()
        for request in self.live:
            request.keep = False
        if not self.live:
            self._reset()

    def has_room(self, fresh: Sequence[Request]) -> bool:
        """Whether new requests fit into the cache next to the running ones; a single request always fits."""
        rows = len(self.live) + len(fresh)
        columns = max([self._needed, *(_rounded(len(request) + SPARE_COLUMNS) for request in fresh)])
        return rows == 1 or rows * columns <= self.max_tokens

    def shed(self) -> list[Request]:
        """Preempt the newest requests until the rest have room for a token each; return the preempted, oldest first."""
        gone: list[Request] = []
        while len(self.live) > 1 and len(self.live) * self._needed > self.max_tokens:
            gone.insert(0, max(self.live, key=lambda request: request.number))
            self.preemptions += 1
            self.leave(gone[:1])
        return gone

    def admit(self, fresh: Sequence[Request]) -> None:
        """Assign slots to new requests; the next steps compute their prompts."""
        leaders: dict[Key, Request] = {}
        starts: list[_Start] = []
        followers: list[Request] = []
        for request in fresh:
            key = key_of(request.tokens(0, len(request)))
            request.done, request.leader = 0, leaders.get(key)
            # The episodes of a group begin with the same prompt, which is computed once.
            if request.leader is None:
                leaders[key] = request
                starts.append(self._look_up(_Start(request, key), [start.source for start in starts if start.whole]))
            else:
                followers.append(request)
            self.prompt_tokens += 0 if request.ids else len(request)
        if not fresh:
            return
        taken_over = sum(start.whole for start in starts)
        self._make_room(len(fresh) - taken_over, max(map(len, fresh)) + SPARE_COLUMNS)
        # Copy from slots before the requests that take them over write to them.
        for start in sorted(starts, key=lambda start: start.whole):
            self._begin(start)
        for request in followers:
            request.slot = self._take_slot()
            self._admitted += 1
            self.live.append(request)

    def leave(self, gone: Sequence[Request], *, keep: bool = False) -> None:
        """Remove requests that ended or were cancelled; keep their caches if ``keep`` is set."""
        if not gone:
            return
        left = set(map(id, gone))
        self.live = [request for request in self.live if id(request) not in left]
        for request in gone:
            if self._running.get(request.key) is request:
                self._running.pop(request.key)
            free = [request.slot]
            if keep and request.keep and self._keeps and request.done <= self.max_tokens:
                free = self.pool.keep(key_of(request.tokens(0, request.done)), request.slot, self._admitted)
            for slot in free:
                self._free_slot(slot)
        for request in self.live:
            # If the request that computes a shared prompt is removed, another one of its group computes it.
            if request.leader is not None and id(request.leader) in left:
                gone_leader, request.leader = request.leader, None
                for other in self.live:
                    if other.leader is gone_leader:
                        other.leader = request
        if not (self.live or len(self.pool)) and self._cache.slots * self._cache.columns > self.max_tokens:
            self._reset()

    def step(self) -> list[tuple[Request, FinishReason]]:
        """Compute one forward pass, and sample a token for every request whose prompt is completely computed.

        Returns:
            The requests that end with that token, each with the reason.
        """
        self._make_room(0, self._needed)
        budget = self._max_prefill_tokens
        newest: list[Request] = []
        begun: list[tuple[Request, int]] = []
        for request in self.live:
            left = len(request) - request.done
            if request.leader is not None:
                continue
            if left == 1:
                newest.append(request)
            elif budget > 0:
                begun.append((request, min(left, budget)))
                budget -= begun[-1][1]
        newest.sort(key=len, reverse=True)
        count = count_alone([len(request) for request in newest], self._model.device)
        alone, newest = newest[:count], newest[count:]
        self._close_ranks(newest)
        newest.sort(key=lambda request: request.slot)
        begun = [(request, 1) for request in alone] + begun
        logits = self._forward(newest, begun)
        drawing = newest + [request for request, _ in begun if request.done == len(request)]
        followers = [request for request in self.live if request.leader is not None]
        rows = list(range(len(drawing)))
        if followers:
            at = {id(request): row for row, request in enumerate(drawing)}
            for request in followers:
                if id(request.leader) in at:
                    rows.append(at[id(request.leader)])
                    drawing.append(request)
            self._follow([request for request in followers if id(request.leader) in at])
            logits = logits[torch.tensor(rows, device=logits.device)]
        _, ended = self._draw(drawing, logits) if drawing else (logits, [])
        self.leave([request for request, _ in ended], keep=True)
        return ended

    def _forward(self, newest: Sequence[Request], begun: Sequence[tuple[Request, int]]) -> Tensor:
        """Run the model; return the logits at the last token of each request that is then completely computed.

        Args:
            newest: Requests of which only the newest token is not computed yet; their attention is computed together.
            begun: Requests whose attention is computed separately, each with the number of its tokens to compute now:
                requests whose prompt is not completely computed, and the longest requests with one new token.
        """
        device = self._model.device
        slots, positions = [request.slot for request in newest], [request.done for request in newest]
        ids = [request.ids[-1] if request.ids else request.prompt[-1] for request in newest]
        held, where, wanted, pieces = list(slots), list(positions), list(range(len(newest))), []
        for request, count in begun:
            start, stop = request.done, request.done + count
            pieces.append(TokenRun(request.slot, len(ids), count, start))
            ids += request.tokens(start, stop)
            where += range(start, stop)
            held += [request.slot] * count
            if stop == len(request):
                wanted.append(len(ids) - 1)
        self._cache.write_to(held, where, device)
        with packed(self._model, Pack(slots, positions, pieces, device)):
            output = self._model(
                input_ids=torch.tensor([ids], device=device),
                position_ids=torch.tensor([where], device=device),
                use_cache=True,
                logits_to_keep=torch.tensor(wanted, dtype=torch.long, device=device),
                **{self._cache_argument: self._cache.hf},
            )
        for request in newest:
            request.done += 1
        for request, count in begun:
            request.done += count
        logits: Tensor = output.logits[0].float()
        return logits

    def _look_up(self, start: _Start, taken: Sequence[CachedSequence | Request | None]) -> _Start:
        """Record in ``start`` the longest cached prefix of its request, and return ``start``.

        Other requests will take over the slots of the sequences in ``taken``, so this request can only copy from them.
        """
        if self._keeps:
            kept, common = self.pool.best(start.key, self._admitted)
            running, shared = self._running.best(start.key)
            shared = 0 if running is None else min(shared, running.done)
            # The last token is always computed, since generation needs its logits.
            known = min(max(common, shared), len(start.request) - 1)
            if kept is not None and common >= shared and common == kept.tokens and kept not in taken:
                start.source, start.known, start.whole = kept, known, True
            elif known >= MIN_REUSE:
                start.source, start.known = kept if common >= shared else running, known
        return start

    def _begin(self, start: _Start) -> None:
        """Assign a slot to a request, and reuse its cached prefix there."""
        request, source = start.request, start.source
        if start.whole and isinstance(source, CachedSequence) and source in self.pool:
            request.slot, request.done = self.pool.drop(source), start.known
        else:
            request.slot = self._take_slot()
            if isinstance(source, Request) or (source is not None and source in self.pool):
                self._cache.copy(source.slot, [request.slot], start.known)
                request.done = start.known
        if request.ids:
            self.recomputed_tokens += len(request) - request.done
        else:
            self.computed_tokens += len(request) - request.done
        if self._keeps and start.key not in self._running:
            self._running.add(start.key, request)
            request.key = start.key
        self._admitted += 1
        self.live.append(request)

    def _follow(self, followers: Sequence[Request]) -> None:
        """Copy to each of ``followers`` the keys and values for which it waits, from its ``Request.leader``."""
        for leader in {id(request.leader): request.leader for request in followers}.values():
            assert leader is not None  # a follower has a leader
            own = [request for request in followers if request.leader is leader]
            self._cache.copy(leader.slot, [request.slot for request in own], leader.done)
            for request in own:
                request.leader, request.done = None, leader.done

    def _close_ranks(self, rows: Sequence[Request]) -> None:
        """Move the requests ``rows`` to the first slots if attention would read too many other slots."""
        count = len(rows)
        front = max((request.slot for request in rows), default=-1) + 1
        if front - count <= max(FEW_DEAD, MAX_DEAD * front):
            return
        taken = {request.slot for request in rows}
        holes = [slot for slot in range(count) if slot not in taken]
        moved = [request for request in rows if request.slot >= count]
        held: dict[int, Request | CachedSequence] = {request.slot: request for request in self.live}
        held |= {entry.slot: entry for entry in self.pool}
        # Slots that hold another sequence come first: their contents are swapped. Empty slots only receive a copy.
        holes.sort(key=lambda slot: slot not in held)
        others = [held[slot] for slot in holes if slot in held]
        swaps, slots = len(others), [request.slot for request in moved]
        if swaps:
            self._cache.exchange(holes[:swaps], slots[:swaps], _longest([*moved[:swaps], *others]))
        self._cache.move(slots[swaps:], holes[swaps:], _longest(moved[swaps:]))
        free = set(self._free).difference(holes)
        for hole, request in zip(holes, moved, strict=True):
            if hole in held:
                held[hole].slot = request.slot
            else:
                free.add(request.slot)
            request.slot = hole
        self._free = sorted(free)

    def _make_room(self, fresh: int, columns: int) -> None:
        """Ensure that ``fresh`` slots with at least ``columns`` columns are free; drop kept sequences if necessary."""
        cache, rows = self._cache, len(self.live) + fresh
        wide = cache.columns
        if columns > wide:
            # Grow by a quarter, if that leaves room for as many sequences, so that growing is rare.
            generous = min(wide * 5 // 4, self.max_tokens // max(1, rows + len(self.pool)))
            wide = max(_rounded(columns), generous // COLUMNS * COLUMNS)
        if rows * wide > self.max_tokens:
            # Shrink to the running requests, since a longer one has ended.
            wide = max(_rounded(columns), self._needed)
            for entry in [entry for entry in self.pool if entry.tokens > wide]:
                self._free_slot(self.pool.drop(entry))
        most = max(rows, self.max_tokens // max(1, wide))
        old = self._admitted - OLD * cache.slots
        while len(self.pool) and rows + len(self.pool) > (most if self.pool.oldest.number > old else cache.slots):
            self._free_slot(self.pool.drop_oldest())
        used = rows + len(self.pool)
        slots = cache.slots if used <= cache.slots else max(used, min(most, cache.slots * 3 // 2))
        slots = min(slots, max(used, most))
        if not cache.slots and self._model.device.type == "cpu":
            # Begin with the size of the last cache, instead of growing to it again: zeros on a CPU take no memory
            # until they are overwritten.
            if used * self._former[1] <= self.max_tokens:
                wide = max(wide, self._former[1])
            slots = max(used, min(max(slots, self._former[0]), self.max_tokens // wide))
        if (slots, wide) == (cache.slots, cache.columns):
            return
        holders: list[Request | CachedSequence] = [*sorted(self.live, key=lambda request: request.slot), *self.pool]
        cache.resize([holder.slot for holder in holders], _longest(holders), slots, wide)
        for slot, holder in enumerate(holders):
            holder.slot = slot
        self._free = list(range(len(holders), slots))

    def _take_slot(self) -> int:
        if not self._free:
            self._make_room(1, self._cache.columns)
        slot: int = heapq.heappop(self._free)
        return slot

    def _free_slot(self, slot: int) -> None:
        heapq.heappush(self._free, slot)

    @property
    def _needed(self) -> int:
        """Number of columns (token positions per slot) that the longest running request needs, rounded up."""
        return _rounded(max(map(len, self.live), default=0))

    def _reset(self) -> None:
        self._former = self._cache.slots, self._cache.columns
        self._cache = SlotCache(self._model.config)
        self._free = []


def _longest(sequences: Sequence[Request | CachedSequence]) -> int:
    """Number of cached tokens of the longest sequence; 0 if there is none."""
    return max((one.tokens if isinstance(one, CachedSequence) else one.done for one in sequences), default=0)


def _rounded(columns: int) -> int:
    return -(-columns // COLUMNS) * COLUMNS
