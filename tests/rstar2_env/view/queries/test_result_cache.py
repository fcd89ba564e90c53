"""Answers are kept until there are too many: then the one goes that was not asked for the longest."""

import threading

import pytest

from rstar2_env.view.queries.result_cache import ResultCache


def test_the_answer_goes_that_nobody_asked_for():
    kept, made = ResultCache(2), []
    for question in "abacabc":
        assert kept.find(question, lambda q=question: made.append(q) or q.upper()) == question.upper()
    assert "".join(made) == "abcbc"


def test_a_thread_that_asks_meanwhile_gets_the_answer_that_another_makes():
    kept, found, again = ResultCache(2), [], threading.Event()
    other = threading.Thread(target=lambda: found.append(kept.find("a", lambda: again.set() or "made again")))

    def make():
        other.start()
        assert not again.wait(0.2)
        return "made once"

    assert kept.find("a", make) == "made once"
    other.join(30)
    assert found == ["made once"]


def test_a_failure_is_no_answer():
    kept = ResultCache(2)
    with pytest.raises(ZeroDivisionError):
        kept.find("a", lambda: 1 // 0)
    assert kept.find("a", lambda: 1) == 1
