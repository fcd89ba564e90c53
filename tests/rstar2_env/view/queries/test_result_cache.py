"""Answers are kept until there are too many: then the one goes that was not asked for the longest."""

from rstar2_env.view.queries.result_cache import ResultCache


def test_the_answer_goes_that_nobody_asked_for():
    kept, made = ResultCache(2), []
    for question in "abacabc":
        assert kept.find(question, lambda q=question: made.append(q) or q.upper()) == question.upper()
    assert "".join(made) == "abcbc"
