"""The last few answers that cost more than to look them up, kept until what they were made of has changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any


class Kept:
    """A bounded number of answers by their questions; any thread.

    Args:
        most: Answers that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._answers: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, question: Hashable, make: Callable[[], Any]) -> Any:
        """The answer to a question, made if it is not kept.

        Args:
            question: It, with the version of what it is about.
            make: Makes the answer.
        """
        with self._lock:
            if question in self._answers:
                self._answers.move_to_end(question)
                return self._answers[question]
        made = make()
        with self._lock:
            self._answers[question] = made
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)
        return made


KEPT = Kept(16)
"""Lists of numbers of the index: those of the episodes, groups or problems that a question means, in its order."""
