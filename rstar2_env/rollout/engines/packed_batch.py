"""The running requests of ``TransformersEngine``, all of them computed in one forward pass a step.

A pass is over the newest token of every request that generates, and over the prompts of those that begin, packed one
after the other (``attention.py``). Each sequence has a slot of the cache from its first token on and keeps it when its
request has ended, so that the next turn of an episode goes on where the last one was, with nothing copied. A prompt
that begins as another sequence does starts with a copy of that beginning. Only the rest of each prompt is computed.

The slots together have at most as many tokens, unused columns included, as the batch may hold. Where that is reached,
the sequences that no request uses go first, then the youngest requests, which are computed again later. Not covered:
keeping sequences whose keys depend on the length of the whole sequence.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from rstar2_env.rollout.engine import FinishReason
from rstar2_env.rollout.engines.attention import Pack, TokenRun, count_alone, packed
from rstar2_env.rollout.engines.prefix import CachedSequence, Key, PrefixIndex, PrefixPool, key_of
from rstar2_env.rollout.engines.request import Request
from rstar2_env.rollout.engines.sampling import draw_next
from rstar2_env.rollout.engines.slots import SlotCache, reusable

MAX_DEAD = 0.25
"""Share of slots that attention reads without use above which moving the others together costs less."""

MIN_REUSE = 8
"""Shortest cached beginning, in tokens, that is copied; computing a shorter one again costs less."""

FEW_DEAD = 8
"""Number of such slots that is never too large."""

OLD = 1
"""A sequence that was not used while this many times as many requests began as there are slots goes before the cache
grows: its episode has most likely ended."""

COLUMNS = 16
"""The number of columns is a multiple of this."""

SPARE_COLUMNS = 32
"""Columns of a new slot beyond its prompt, so that the buffers do not grow at the first tokens."""

Finish = Callable[[Request], FinishReason | None]
"""Whether a request has ended with its newest token, and why."""


@dataclass(eq=False)
class _Start:
    """How a request begins: its tokens as a key, and who holds how many of them (``whole``: it takes over the slot)."""

    request: Request
    key: Key
    source: CachedSequence | Request | None = None
    known: int = 0
    whole: bool = False


class PackedBatch:
    """Requests that a model generates for together.

    Args:
        model: A causal language model for which ``can_pack`` and ``supports`` hold.
        max_prefill_tokens: Maximum number of tokens of prompts in one forward pass; longer prompts take several.
        max_tokens: Maximum number of tokens in all slots together, unused columns included; one request always runs.
        keep: Whether the caches of ended requests are kept.
        finish: Whether a request has ended.

    Attributes:
        joins: Whether requests may join running ones.
        max_tokens: As given; it may be set between two steps.
        pool: The sequences that are kept.
        prompt_tokens: Tokens of all prompts so far.
        computed_tokens: Those of them that were computed.
        generated_tokens: Tokens drawn so far.
        preemptions: How often a request lost its slot and had to be computed again.
        recomputed_tokens: Tokens computed again because of that.
    """

    joins = True

    def __init__(
        self, model: PreTrainedModel, max_prefill_tokens: int, max_tokens: int, *, keep: bool, finish: Finish
    ) -> None:
        self._model, self._max_prefill_tokens, self.max_tokens = model, max_prefill_tokens, max_tokens
        self._keeps = keep and reusable(model.config)
        self._finish = finish
        self.pool = PrefixPool()
        self.prompt_tokens = self.computed_tokens = self.generated_tokens = 0
        self.preemptions = self.recomputed_tokens = self._admitted = 0
        self._running: PrefixIndex[Request] = PrefixIndex()
        self._free: list[int] = []
        self.live: list[Request] = []
        self._reset()

    def __len__(self) -> int:
        return len(self.live)

    @property
    def tokens(self) -> int:
        """Number of tokens of the running requests."""
        return sum(map(len, self.live))

    @property
    def bytes(self) -> int:
        """Bytes of the cache."""
        return self._cache.bytes

    def clear(self) -> None:
        """Drop every request and every cache."""
        self.live = []
        self._running.clear()
        self.pool.clear()
        self._reset()

    def forget(self) -> None:
        """Drop what is kept, and keep nothing of what was computed until now."""
        for slot in self.pool.clear():
            self._free_slot(slot)
        self._running.clear()
        for request in self.live:
            request.keep = False
        if not self.live:
            self._reset()

    def has_room(self, fresh: Sequence[Request]) -> bool:
        """Whether these requests fit beside those that run; one alone always does."""
        rows = len(self.live) + len(fresh)
        columns = max([self._needed, *(_rounded(len(request) + SPARE_COLUMNS) for request in fresh)])
        return rows == 1 or rows * columns <= self.max_tokens

    def shed(self) -> list[Request]:
        """Take the youngest requests out until the others have room for another token; returns them, oldest first."""
        gone: list[Request] = []
        while len(self.live) > 1 and len(self.live) * self._needed > self.max_tokens:
            gone.insert(0, max(self.live, key=lambda request: request.number))
            self.preemptions += 1
            self.leave(gone[:1])
        return gone

    def admit(self, fresh: Sequence[Request]) -> None:
        """Give new requests their slots; the next steps compute their prompts."""
        leaders: dict[Key, Request] = {}
        starts: list[_Start] = []
        followers: list[Request] = []
        for request in fresh:
            key = key_of(request.tokens(0, len(request)))
            request.done, request.leader = 0, leaders.get(key)
            # The episodes of a group begin with the same prompt: it is computed once.
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
        # Copies first: whoever takes over a slot writes to it.
        for start in sorted(starts, key=lambda start: start.whole):
            self._begin(start)
        for request in followers:
            request.slot = self._take_slot()
            self._admitted += 1
            self.live.append(request)

    def leave(self, gone: Sequence[Request], *, keep: bool = False) -> None:
        """Remove requests; their caches stay if ``keep`` is set."""
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
            # Where the request that was to compute a prompt is gone, the next one of its group does.
            if request.leader is not None and id(request.leader) in left:
                gone_leader, request.leader = request.leader, None
                for other in self.live:
                    if other.leader is gone_leader:
                        other.leader = request
        if not (self.live or len(self.pool)) and self._cache.slots * self._cache.columns > self.max_tokens:
            self._reset()

    def step(self) -> list[tuple[Request, FinishReason]]:
        """Compute one pass, and draw a token for every request whose tokens are then computed.

        Returns:
            The requests that have ended with that token.
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
        ended = self._draw(drawing, logits)
        self.leave([request for request, _ in ended], keep=True)
        return ended

    def _draw(self, drawing: Sequence[Request], logits: Tensor) -> list[tuple[Request, FinishReason]]:
        """Draw the next token of each of these requests, one row of logits each."""
        if not drawing:
            return []
        draw_next(drawing, logits)
        ended = []
        for request in drawing:
            if (reason := self._finish(request)) is not None:
                ended.append((request, reason))
        self.generated_tokens += len(drawing)
        return ended

    def _forward(self, newest: Sequence[Request], begun: Sequence[tuple[Request, int]]) -> Tensor:
        """One pass over the last token of each of ``newest``, and over as many of those of each of ``begun``."""
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
        with packed(self._model, Pack(slots, positions, [0] * len(slots), pieces, device)):
            output = self._model(
                input_ids=torch.tensor([ids], device=device),
                position_ids=torch.tensor([where], device=device),
                past_key_values=self._cache.hf,
                use_cache=True,
                logits_to_keep=torch.tensor(wanted, dtype=torch.long, device=device),
            )
        for request in newest:
            request.done += 1
        for request, count in begun:
            request.done += count
        logits: Tensor = output.logits[0].float()
        return logits

    def _look_up(self, start: _Start, taken: Sequence[CachedSequence | Request | None]) -> _Start:
        """Find out how much of a request's tokens is cached; the slots of ``taken`` go to others."""
        if self._keeps:
            kept, common = self.pool.best(start.key, self._admitted)
            running, shared = self._running.best(start.key)
            shared = 0 if running is None else min(shared, running.done)
            # The last token is always computed: generation begins with its logits.
            known = min(max(common, shared), len(start.request) - 1)
            if kept is not None and common >= shared and common == kept.tokens and kept not in taken:
                start.source, start.known, start.whole = kept, known, True
            elif known >= MIN_REUSE:
                start.source, start.known = kept if common >= shared else running, known
        return start

    def _begin(self, start: _Start) -> None:
        """Give a request its slot, with what is cached of its beginning."""
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
        """Give requests a copy of what their leaders have computed."""
        for leader in {id(request.leader): request.leader for request in followers}.values():
            assert leader is not None  # that is what makes it a follower
            own = [request for request in followers if request.leader is leader]
            self._cache.copy(leader.slot, [request.slot for request in own], leader.done)
            for request in own:
                request.leader, request.done = None, leader.done

    def _close_ranks(self, rows: Sequence[Request]) -> None:
        """Move requests to the first slots, where attention would read too many others."""
        count = len(rows)
        front = max((request.slot for request in rows), default=-1) + 1
        if front - count <= max(FEW_DEAD, MAX_DEAD * front):
            return
        taken = {request.slot for request in rows}
        holes = [slot for slot in range(count) if slot not in taken]
        moved = [request for request in rows if request.slot >= count]
        held: dict[int, Request | CachedSequence] = {request.slot: request for request in self.live}
        held |= {entry.slot: entry for entry in self.pool}
        others = [held[slot] for slot in holes if slot in held]
        tokens = max(one.tokens if isinstance(one, CachedSequence) else one.done for one in (*moved, *others))
        self._cache.exchange(holes, [request.slot for request in moved], tokens)
        free = set(self._free).difference(holes)
        for hole, request in zip(holes, moved, strict=True):
            if hole in held:
                held[hole].slot = request.slot
            else:
                free.add(request.slot)
            request.slot = hole
        self._free = sorted(free)

    def _make_room(self, fresh: int, columns: int) -> None:
        """Have this many free slots, and this many columns; drops what is kept where that is needed."""
        cache, rows = self._cache, len(self.live) + fresh
        wide = cache.columns
        if columns > wide:
            # A quarter more, where that leaves room for as many sequences, so that growing is rare.
            generous = min(wide * 5 // 4, self.max_tokens // max(1, rows + len(self.pool)))
            wide = max(_rounded(columns), generous // COLUMNS * COLUMNS)
        if rows * wide > self.max_tokens:
            # As narrow as the running requests allow, after a longer one that has ended.
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
        if (slots, wide) == (cache.slots, cache.columns):
            return
        holders: list[Request | CachedSequence] = [*sorted(self.live, key=lambda request: request.slot), *self.pool]
        tokens = max((one.tokens if isinstance(one, CachedSequence) else one.done for one in holders), default=0)
        cache.resize([holder.slot for holder in holders], tokens, slots, wide)
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
        """Columns that the running requests need."""
        return _rounded(max(map(len, self.live), default=0))

    def _reset(self) -> None:
        self._cache = SlotCache(self._model.config)
        self._free = []


def _rounded(columns: int) -> int:
    return -(-columns // COLUMNS) * COLUMNS
