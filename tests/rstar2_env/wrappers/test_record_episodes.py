"""Every episode that ends is a line; a crash loses no more than the one being written."""

import gzip
import json

import pytest
from wrapper_env import answer, call, make

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.wrappers import RecordEpisodes, read_episodes


def play(env, *seeds):
    for seed in seeds:
        env.reset(seed=seed)
        env.step(call(x="ü😀"))
        env.step(answer(seed))


@pytest.fixture(params=["episodes.jsonl", "deep/episodes.jsonl.gz"])
def path(request, tmp_path):
    return tmp_path / request.param


def test_a_line_holds_the_whole_episode(path):
    env = RecordEpisodes(make(), path)
    play(env, 1, 2)
    first, second = read_episodes(path)
    assert (first["index"], second["index"], env.count) == (0, 1, 2)
    assert [message["role"] for message in first["messages"]] == ["system", "user", "assistant", "user", "assistant"]
    assert first["end"] == first["info"]["end"] == "answered"
    assert first["statuses"] == ["ok"]
    assert "ü😀" in first["messages"][2]["content"]


def test_gzip_reads_what_is_compressed(tmp_path):
    path = tmp_path / "e.jsonl.gz"
    play(RecordEpisodes(make(), path), 1, 2, 3)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        assert [json.loads(line)["seed"] for line in file] == [1, 2, 3]


def test_resuming_goes_on_after_the_last_whole_episode(path):
    play(RecordEpisodes(make(), path), 1, 2, 3)
    path.write_bytes(path.read_bytes()[:-7])
    env = RecordEpisodes(make(), path, resume=True)
    assert [seed for seed, _ in env.played] == [1, 2]
    play(env, 9)
    assert [(line["index"], line["seed"]) for line in read_episodes(path)] == [(0, 1), (1, 2), (2, 9)]


def test_many_episodes_read_back(tmp_path):
    path = tmp_path / "many.jsonl.gz"
    play(RecordEpisodes(make("z" * 3000), path), *range(100))
    assert [line["seed"] for line in read_episodes(path)] == list(range(100))


def test_a_file_that_exists_is_neither_lost_nor_mixed_up_by_accident(path):
    play(RecordEpisodes(make(), path), 1)
    with pytest.raises(ConfigurationError, match="overwrite="):
        RecordEpisodes(make(), path)
    assert RecordEpisodes(make(), path, overwrite=True).count == 0


@pytest.mark.parametrize("name", ["other.jsonl", "other.jsonl.gz"])
def test_a_file_of_something_else_is_not_resumed(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b'{"a": 1}\n')
    with pytest.raises(ConfigurationError):
        RecordEpisodes(make(), path, resume=True)
    assert path.read_bytes() == b'{"a": 1}\n'


def test_an_episode_given_up_before_its_end_is_left_out(path):
    env = RecordEpisodes(make(), path)
    env.reset(seed=1)
    env.step(call())
    play(env, 2)
    assert [line["seed"] for line in read_episodes(path)] == [2]
