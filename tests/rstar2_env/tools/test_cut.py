"""Long text loses its middle and says how much, in characters or in tokens."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.tools import cut_middle

NOTE = re.compile(r"\n\[\.\.\. (\d+) (characters|tokens) left out \.\.\.\]\n")


class Bytes:
    """A tokenizer whose tokens are the bytes of the text."""

    def encode(self, text, *, add_special_tokens=True):
        return ([256] if add_special_tokens else []) + list(text.encode("utf-8", "replace"))

    def decode(self, token_ids):
        return bytes(token_ids).decode("utf-8", "replace")


class Words:
    """A tokenizer whose tokens are words and the spaces between them; it keeps what it has seen."""

    def __init__(self):
        self.words = []

    def encode(self, text, *, add_special_tokens=True):
        ids = []
        for word in re.findall(r"\s+|\S+", text):
            if word not in self.words:
                self.words.append(word)
            ids.append(self.words.index(word))
        return ids

    def decode(self, token_ids):
        return "".join(self.words[token] for token in token_ids)


@given(st.text(alphabet="ab\n", max_size=60), st.integers(0, 70))
def test_head_and_tail_are_kept_and_the_count_of_characters_is_right(text, limit):
    cut, left_out = cut_middle(text, limit)
    if len(text) <= limit:
        assert (cut, left_out) == (text, 0)
        return
    (note,) = NOTE.finditer(cut)
    head, tail = cut[: note.start()], cut[note.end() :]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) == limit
    assert 0 <= len(head) - len(tail) <= 1
    assert left_out == int(note[1]) == len(text) - limit
    assert note[2] == "characters"


@given(st.text(alphabet="ab \n", max_size=60), st.integers(0, 70))
def test_head_and_tail_are_kept_and_the_count_of_tokens_is_right(text, limit):
    tokenizer = Words()
    tokens = len(tokenizer.encode(text))
    cut, left_out = cut_middle(text, limit, tokenizer=tokenizer)
    if tokens <= limit:
        assert (cut, left_out) == (text, 0)
        return
    (note,) = NOTE.finditer(cut)
    head, tail = cut[: note.start()], cut[note.end() :]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert left_out == int(note[1]) == tokens - limit
    assert note[2] == "tokens"
    kept = tokenizer.encode(text)[: limit - limit // 2], tokenizer.encode(text)[tokens - limit // 2 :]
    assert (head, tail) == (tokenizer.decode(kept[0]), tokenizer.decode(kept[1]))


def test_special_tokens_of_the_tokenizer_are_not_counted():
    assert cut_middle("abcd", 4, tokenizer=Bytes()) == ("abcd", 0)


@given(st.text(max_size=40), st.integers(0, 50))
def test_a_character_cut_between_its_tokens_does_no_harm(text, limit):
    cut, left_out = cut_middle(text, limit, tokenizer=Bytes())
    assert left_out == max(0, len(text.encode()) - limit)
    cut.encode("utf-8")


def test_text_shorter_than_the_limit_in_bytes_is_not_tokenized():
    class Refuses:
        def encode(self, text, *, add_special_tokens=True):
            raise AssertionError

    assert cut_middle("short", 5, tokenizer=Refuses()) == ("short", 0)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (0, "\n[... 6 characters left out ...]\n"),
        (1, "a\n[... 5 characters left out ...]\n"),
        (2, "a\n[... 4 characters left out ...]\nf"),
        (5, "abc\n[... 1 characters left out ...]\nef"),
    ],
)
def test_examples(limit, expected):
    assert cut_middle("abcdef", limit)[0] == expected


def test_wide_characters_count_as_one():
    assert cut_middle("😀" * 10, 10) == ("😀" * 10, 0)
