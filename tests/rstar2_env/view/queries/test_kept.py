"""Answers are kept until there are too many: then the one goes that was not asked for the longest."""

from rstar2_env.view.queries.kept import Kept


def test_the_answer_goes_that_nobody_asked_for():
    kept, made = Kept(2), []
    for question in "abacabc":
        assert kept.find(question, lambda asked=question: made.append(asked) or asked.upper()) == question.upper()
    assert "".join(made) == "abcbc"
