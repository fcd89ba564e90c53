"""Environments that are bad in one way each: in how they behave, not in what they show or pay (``bad_envs``)."""

from __future__ import annotations

import itertools
import math
import random
import tempfile
import threading

from good_sums import Sums, draw

from rstar2_env.env.turn_result import GoesOn
from rstar2_env.problems import ProceduralSource


class Restless(Sums):
    """A step shows a number of the system's."""

    def step(self, action):
        text, reward, terminated, truncated, info = super().step(action)
        return text, reward, terminated, truncated, info | {"trace": random.SystemRandom().random()}


class Remembers(Sums):
    """Counts the episodes of the instance, and shows the count."""

    played = 0

    def reset(self, **options):
        self.played += 1
        text, info = super().reset(**options)
        return text, info

    def step(self, action):
        text, reward, terminated, truncated, info = super().step(action)
        return text, reward, terminated, truncated, info | {"episodes": self.played}


class Unfinished(Sums):
    """An episode that was cut off leaves a mark on the next one."""

    pending = False

    def step(self, action):
        before = self.pending
        text, reward, terminated, truncated, info = super().step(action)
        self.pending = not (terminated or truncated)
        return text, reward, terminated, truncated, info | {"pending": before}


class Shared(Sums):
    """Keeps the last seed in the class, where other instances see it."""

    last: str = ""

    def reset(self, **options):
        returned = super().reset(**options)
        Shared.last = self.problem.id
        return returned

    def step(self, action):
        text, reward, terminated, truncated, info = super().step(action)
        return text, reward, terminated, truncated, info | {"last": Shared.last}


class Unseeded(Sums):
    """Ignores the seed."""

    def reset(self, *, seed=None, options=None):
        return super().reset(options=options)


class OneStart(Sums):
    """Every seed starts the same."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=0, options=options)


class NotANumber(Sums):
    """A reward that is no number."""

    def step(self, action):
        text, reward, terminated, truncated, info = super().step(action)
        return text, math.nan if "<answer>" not in action else reward, terminated, truncated, info


class WrongParts(Sums):
    """Names components that are not the reward."""

    def end_info(self, end):
        return {"reward_components": {"format": 0.5}}


class NotJson(Sums):
    """Puts a set into info."""

    def reset(self, **options):
        text, info = super().reset(**options)
        return text, info | {"letters": {1, 2}}


class PlaysOn(Sums):
    """Plays on after the end."""

    def step(self, action):
        try:
            return super().step(action)
        except Exception:
            return "", 0.0, True, False, {"role": "user", "tool_calls": []}


class NotPickled(Sums):
    """Holds a lock."""

    def __init__(self, **options):
        super().__init__(**options)
        self.lock = threading.Lock()


class Hoards(Sums):
    """Opens a file for every episode and keeps it."""

    def __init__(self, **options):
        super().__init__(**options)
        self.files = []

    def reset(self, **options):
        self.files.append(tempfile.TemporaryFile())  # noqa: SIM115
        return super().reset(**options)

    def __getstate__(self):
        return {**self.__dict__, "files": []}

    def close(self):
        for file in self.files:
            file.close()
        super().close()


class Endless(Sums):
    """Goes on for ever."""

    def __init__(self, **options):
        super().__init__(max_turns=10**6, **options)

    answered = 0

    def answer_turn(self, turn):
        Endless.answered += 1
        ended = super().answer_turn(turn)
        return ended if ended.correct else GoesOn("Try again.")


class OtherSchema(Sums):
    """Declares a tool with a name that it does not have."""

    def reset(self, **options):
        text, info = super().reset(**options)
        info["tools"][0]["function"]["name"] = "double"
        return text, info


class LosesIds(Sums):
    """Does not start the problem that its id names."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed, options={} if "problem_id" in (options or {}) else options)


class Relabelled:
    """A source that says of itself that it is another split."""

    def __init__(self, source, split):
        self._source, self.name, self.split = source, source.name, split
        self.get, self.sample = source.get, source.sample

    def __getitem__(self, index):
        return self._source[index]

    def __iter__(self):
        return iter(self._source)


class Overlapping(Sums):
    """Its split test is train."""

    def __init__(self, split: str = "train", **options):
        super().__init__(problems=Relabelled(ProceduralSource("sums", draw, "train"), split), **options)


_made = itertools.count()


class Unpinned(Sums):
    """Other problems in every instance."""

    def __init__(self, split: str = "train", **options):
        super().__init__(split, problems=ProceduralSource("sums", draw, split, next(_made)), **options)


class Undocumented(Sums):
    pass


Undocumented.__doc__ = None
