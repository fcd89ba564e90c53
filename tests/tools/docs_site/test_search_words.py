"""The script of the search drops the words that the theme's index does not have."""

import json
import re

import material
import pytest
import search_words


def test_the_list_is_that_of_the_theme_and_the_words_of_a_wish():
    words = search_words.stop_words()
    assert {"a", "how", "what", "the", "my"} <= set(words)
    assert not {"train", "resume", "model", "entropy"} & set(words)
    assert json.loads(re.search(r"new Set\((.*)\)", search_words.script())[1]) == [*words, "use", "using", "need"]


def test_a_theme_without_the_list_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(material, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(LookupError, match="list of stop words"):
        search_words.stop_words()
