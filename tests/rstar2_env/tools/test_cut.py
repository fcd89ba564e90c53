"""Long text loses its middle and says how much, in characters or in tokens."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_hub import small_hub

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing.toy_env import ToyEnv
from rstar2_env.tools import cut_middle
from rstar2_env.tools.cut import make_tokenizer
from rstar2_env.wrappers import make_env

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


class TestATokenizerByName:
    @pytest.fixture
    def folder(self, tmp_path):
        tokenizers = pytest.importorskip("tokenizers", reason="tokenizers comes with the extra 'train'")
        transformers = pytest.importorskip("transformers", reason="transformers comes with the extra 'train'")
        vocabulary = {"[UNK]": 0, **{character: number for number, character in enumerate("abc0123456789 ", 1)}}
        made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
        made.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex("."), "isolated")
        transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]").save_pretrained(tmp_path)
        return str(tmp_path)

    def test_a_folder_is_loaded_once(self, folder):
        assert make_tokenizer(folder) is make_tokenizer(folder)
        assert make_tokenizer(folder).encode("abc", add_special_tokens=False) == [1, 2, 3]

    def test_a_tokenizer_itself_and_none_are_left_alone(self):
        words = Words()
        assert make_tokenizer(words) is words
        assert make_tokenizer(None) is None

    def test_an_environment_and_a_wrapper_count_in_its_tokens(self, folder):
        env = make_env(ToyEnv, wrappers=[f"observation_limit:limit=3,tokenizer={folder}"], plan="0123456789")
        env.reset(seed=1)
        assert "7 tokens left out" in env.step(typical_turn(env))[0]
        for most, end in ((20, "tokens"), (1000, None)):
            env = make_env(ToyEnv, max_tokens=most, tokenizer=folder)
            env.reset(seed=1)
            assert env.step(typical_turn(env))[4].get("end") == end

    def test_a_folder_without_one_is_refused(self, tmp_path):
        pytest.importorskip("transformers", reason="transformers comes with the extra 'train'")
        with pytest.raises(ConfigurationError, match=r"folder .*absent"):
            make_tokenizer(str(tmp_path / "absent"))

    def test_a_name_that_the_hub_does_not_know_is_asked_for_once(self, monkeypatch):
        pytest.importorskip("transformers", reason="transformers comes with the extra 'train'")
        with small_hub(monkeypatch) as asked, pytest.raises(ConfigurationError, match="hub has no model of that name"):
            make_tokenizer("nobody/nothing")
        assert asked.count("/api/models/nobody/nothing") == 1


def typical_turn(env):
    return env.unwrapped.dialect.format_call("stub", {})
