"""The keywords of ``evaluate``: the typed keywords are the options, and a wrong keyword is reported by name."""

from dataclasses import fields
from typing import get_type_hints

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.evaluation.options import EvaluationKeywords, EvaluationOptions
from rstar2_env.evaluation.run import evaluate


def test_the_typed_keywords_are_the_options_with_their_types():
    hints = get_type_hints(EvaluationOptions, include_extras=True)
    expected = {field.name: hints[field.name] for field in fields(EvaluationOptions) if field.name != "agent"}
    assert get_type_hints(EvaluationKeywords, include_extras=True) == expected
    assert EvaluationKeywords.__required_keys__ == frozenset()


def test_an_unknown_keyword_is_refused_and_the_closest_option_suggested():
    with pytest.raises(ConfigurationError, match=r"'episode'.* 'episodes'"):
        evaluate("rstar2/MathTool-v0", "oracle", episode=3)
    with pytest.raises(ConfigurationError, match="'zzz'"):
        evaluate("rstar2/MathTool-v0", "oracle", zzz=3)
