"""The keywords of ``evaluate``: the typed keywords are the options, and a wrong keyword is reported by name."""

from dataclasses import fields

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.evaluation.options import EvaluationKeywords, EvaluationOptions
from rstar2_env.evaluation.run import evaluate


def test_the_typed_keywords_are_the_options_with_their_types():
    expected = {field.name: field.type for field in fields(EvaluationOptions) if field.name != "agent"}
    assert {name: hint.__forward_arg__ for name, hint in EvaluationKeywords.__annotations__.items()} == expected
    assert EvaluationKeywords.__required_keys__ == frozenset()


def test_an_unknown_keyword_is_refused_and_the_closest_option_suggested():
    with pytest.raises(ConfigurationError, match=r"'episode'.* 'episodes'"):
        evaluate("rstar2/MathTool-v0", "oracle", episode=3)
    with pytest.raises(ConfigurationError, match="'zzz'"):
        evaluate("rstar2/MathTool-v0", "oracle", zzz=3)
