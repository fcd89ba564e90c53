"""What the processes of a run tell each other in a round: each to the desk of the first one, and the desk to each."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.episode import Episode

from .desk import Key
from .job import Job, Unfinished

Played = Episode | Unfinished | BaseException
"""What became of a job."""


@dataclass(frozen=True, slots=True)
class Enter:
    """To the desk: I can play."""


@dataclass(frozen=True, slots=True)
class Offer:
    """To the desk: a job of mine waits."""

    number: int


@dataclass(frozen=True, slots=True)
class Withdraw:
    """To the desk: I need a job no longer."""

    number: int


@dataclass(frozen=True, slots=True)
class Lent:
    """To the desk: the job that another process is to play; ``None`` if it is no longer needed."""

    number: int
    job: Job | None


@dataclass(frozen=True, slots=True)
class Ended:
    """To the desk: what became of a job."""

    key: Key
    played: Played


@dataclass(frozen=True, slots=True)
class GroupEnded:
    """To the desk: all episodes of a group of mine have ended."""


@dataclass(frozen=True, slots=True)
class Finished:
    """To the desk: my part has returned."""


@dataclass(frozen=True, slots=True)
class Play:
    """From the desk: play this job; it comes along if it is another process's."""

    key: Key
    job: Job | None = None


@dataclass(frozen=True, slots=True)
class Lend:
    """From the desk: let another process play a job of yours."""

    number: int


@dataclass(frozen=True, slots=True)
class Drop:
    """From the desk: stop playing a job."""

    key: Key


@dataclass(frozen=True, slots=True)
class Result:
    """From the desk: what became of a job of yours."""

    number: int
    played: Played


@dataclass(frozen=True, slots=True)
class Halt:
    """From the desk: enough groups have ended; leave off what you play."""


@dataclass(frozen=True, slots=True)
class Over:
    """From the desk: the parts of all processes have returned."""
