"""Claims about specs written as text or as mappings, sets of the field, mixtures, and the cache of a process."""

from __future__ import annotations

import copy
import json
import os
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import numpy as np
import pytest

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.options.text import split_list
from rstar2_env.problems import NAMED_SETS, FiniteSource, MixtureSource, ProblemSource, load_problems
from rstar2_env.problems.files import formats as files_module
from rstar2_env.problems.files.columns import parse_column
from rstar2_env.problems.filters import make_where
from rstar2_env.problems.spec import located
from rstar2_env.testing import StubSandbox


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("problem,solution,level\n" + "".join(f"q{n},so #### {n},{n % 3}\n" for n in range(30)))
    return path


class TestText:
    def test_columns_and_options_follow_a_colon(self, file):
        source = load_problems(f"{file}:question=problem,answer=solution|after:####,where=level == 2,name=mine")
        assert [problem.answer for problem in source][:3] == ["2", "5", "8"]
        assert source.name == "mine"

    def test_values_may_be_json_with_commas(self, file):
        columns = json.dumps({"question": "problem", "answer": "solution|after:####"})
        source = load_problems(f'{file}:columns={columns},where=["level > 0", "answer < 9"]')
        assert [problem.answer for problem in source] == ["1", "2", "4", "5", "7", "8"]

    def test_a_file_has_no_split_unless_it_is_divided(self, file):
        assert load_problems(f"{file}:question=problem,answer=level,split=test").split == ""
        assert load_problems(f"{file}:question=problem,answer=level,holdout=0.5,split=test").split == "test"

    def test_a_whole_spec_may_be_json(self, file):
        spec = {"path": str(file), "columns": {"question": "problem", "answer": "level"}}
        assert load_problems(json.dumps(spec))[4].answer == "1"
        assert load_problems(spec)[4].answer == "1"

    def test_options_by_keyword_come_after_those_of_the_text(self, file):
        source = load_problems(f"{file}:question=problem,answer=level", name="by keyword", where="answer == 1")
        assert (source.name, source[0].answer) == ("by keyword", "1")

    def test_a_file_whose_name_holds_a_colon_is_a_file(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "a:b=c.jsonl").write_text('{"question": "q", "answer": 1}\n')
        assert load_problems("a:b=c.jsonl")[0].answer == "1"

    @pytest.mark.parametrize(
        ("text", "parts"),
        [
            ("a,b", ["a", "b"]),
            ('[1,2],"x,y",z', ["[1,2]", '"x,y"', "z"]),
            ("(a,b", ["(a", "b"]),
            ("", []),
            ("a,", ["a"]),
        ],
    )
    def test_commas_in_brackets_and_quotes_do_not_split(self, text, parts):
        assert split_list(text) == parts

    @pytest.mark.parametrize(
        ("spec", "said"),
        [
            ("{broken", "must be written as a JSON object"),
            ({"path": "a", "hub": "b"}, "only one of the keys 'path', 'hub'"),
            ({"mix": "a.jsonl"}, "must be a list of sources"),
            ({"mix": []}, "at least one part"),
            ({"mix": [{"spec": "arithmetic", "weight": -1}]}, "at least 0, not -1"),
            ({"mix": ["arithmetic", "arithmetic"]}, "have the same name"),
            ({"hub": "gsm8k"}, "owner/name"),
            ("hf:gsm8k", "owner/name"),
        ],
    )
    def test_a_spec_that_does_not_fit_says_why(self, spec, said):
        with pytest.raises(ConfigurationError, match=said):
            load_problems(spec)

    def test_an_option_that_there_is_none_of_is_named(self, file):
        with pytest.raises(ConfigurationError, match=r"colums.*Did you mean 'columns'"):
            load_problems(file, colums={})

    def test_an_environment_takes_a_mapping_and_goes_to_json_and_back(self, file):
        spec = {"path": str(file), "columns": {"question": "problem", "answer": "level"}, "where": ["answer == 2"]}
        env = gym.make("rstar2/MathTool-v0", problems=spec, sandbox=StubSandbox())
        assert env.reset(seed=1)[0].endswith(env.unwrapped.problem.question)
        assert env.unwrapped.problem.answer == "2"
        assert json.loads(json.dumps(spec)) == spec


PARTS = {"mix": [{"spec": "arithmetic:level=1", "weight": 3}, {"spec": "arithmetic:level=2", "weight": 1}]}
NAMES = {"columns": {"question": "problem", "answer": "level"}}


class TestMixtures:
    @pytest.mark.parametrize("part", ["arithmetic", ("arithmetic", 1.0), [1.0], 5])
    def test_a_part_is_a_source_with_its_weight(self, part):
        with pytest.raises(ConfigurationError, match=r"pair of a source and a weight, such as \(load_problems"):
            MixtureSource([part])

    def test_each_part_comes_as_often_as_its_weight_says(self):
        source = load_problems(PARTS)
        assert isinstance(source, MixtureSource)
        assert isinstance(source, ProblemSource)
        assert not isinstance(source, FiniteSource)
        counts = Counter(source[n].source for n in range(2000))
        # Four standard deviations of a share of .25 in 2000 draws are .039.
        assert abs(counts["arithmetic"] / 2000 - 0.25) < 0.04

    def test_a_problem_is_the_same_by_index_by_id_and_in_a_copy(self):
        source = load_problems(PARTS, seed=3)
        copied = pickle.loads(pickle.dumps(source))
        for n in range(20):
            assert source.get(source[n].id) == source[n] == copied[n]
        assert source[5] != load_problems(PARTS, seed=4)[5]
        assert source.sample(np.random.default_rng(1)) == copied.sample(np.random.default_rng(1))

    def test_seed_and_split_reach_the_parts(self):
        source = load_problems(PARTS, split="test")
        assert source.split == "test"
        assert all("/test/" in source[n].id for n in range(5))

    def test_files_and_families_mix_and_a_part_of_weight_0_is_never_drawn(self, file):
        part = {"path": str(file), "columns": {"question": "problem", "answer": "level"}, "weight": 0}
        source = load_problems({"mix": [part, "arithmetic"], "name": "both"})
        assert source.name == "both"
        assert {source[n].source for n in range(50)} == {"arithmetic"}
        assert source.get("data/data-4").answer == "0"

    def test_an_unknown_id_names_the_parts(self):
        with pytest.raises(UnknownNameError, match="the parts are arithmetic:level=1, arithmetic"):
            load_problems(PARTS).get("gsm8k/1")


class TestNamedSets:
    def test_the_sets_of_the_issue_are_there(self):
        assert set(NAMED_SETS) >= {
            "dapo-math-17k", "openmathreasoning", "deepscaler", "math-500", "aime24", "aime25", "amc23", "hmmt25",
            "gsm8k", "minerva", "olympiadbench",
        }  # fmt: skip

    @pytest.mark.parametrize("name", NAMED_SETS)
    def test_every_entry_is_one_that_the_loader_can_use(self, name):
        entry = NAMED_SETS[name]
        assert entry.hub.count("/") == 1
        assert {"question", "answer"} <= set(entry.columns)
        assert set(entry.problems) <= set(entry.splits) <= {"train", "test"}
        for column in entry.columns.values():
            parse_column(column)
        make_where(entry.options.get("where"))
        assert set(entry.options) <= {"keep", "where", "unique", "skip_incomplete"}

    def test_nobody_trains_on_a_benchmark_by_accident(self):
        with pytest.raises(ConfigurationError, match="aime24 has only the split test, not 'train'"):
            load_problems("aime24")

    @pytest.mark.parametrize("spec", ["gsm8k", "hf:openai/gsm8k:config=main", {"hub": "openai/gsm8k"}])
    def test_without_a_network_the_error_says_what_to_do(self, spec, tmp_path, monkeypatch):
        datasets = pytest.importorskip("datasets", reason="datasets comes with the extra 'train'")
        monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
        with pytest.raises(ConfigurationError, match=r"openai/gsm8k.*Without a network.*save_to_disk"):
            load_problems(spec, split="test")

    def test_a_local_copy_is_read_as_the_set_is(self, tmp_path):
        path = tmp_path / "copy.jsonl"
        path.write_text(json.dumps({"question": "q", "answer": "3 * 4 = <<3*4=12>>12\n#### 12"}) + "\n")
        problem = load_problems(f"{path}:like=gsm8k")[0]
        assert (problem.answer, problem.meta["solution"][:5]) == ("12", "3 * 4")

    def test_an_unknown_name_suggests_the_nearest(self):
        with pytest.raises(UnknownNameError, match="Did you mean 'gsm8k'"):
            load_problems("gsm8")


class TestCache:
    @pytest.fixture
    def counted(self, monkeypatch):
        calls = []
        real = files_module.READERS["csv"]

        def reader(path, columns):
            calls.append(path)
            return real(path, columns)

        monkeypatch.setattr(files_module, "READERS", {**files_module.READERS, "csv": reader})
        return calls

    def test_a_hundred_environments_read_a_file_once_and_share_its_problems(self, file, counted):
        spec = {"path": str(file), **NAMES}
        envs = [gym.make("rstar2/MathTool-v0", problems=spec, sandbox=StubSandbox()).unwrapped for _ in range(100)]
        assert len(counted) == 1
        assert len({id(env.problems) for env in envs}) == 1
        assert copy.deepcopy(envs[0]).problems is envs[0].problems

    def test_threads_that_ask_at_once_read_it_once(self, file, counted):
        with ThreadPoolExecutor(8) as pool:
            sources = list(pool.map(lambda _: load_problems(file, **NAMES), range(32)))
        assert len(counted) == 1
        assert all(source is sources[0] for source in sources)

    def test_parts_share_the_reading(self, file, counted):
        train, test = (load_problems(file, holdout=0.3, split=split, **NAMES) for split in ("train", "test"))
        assert len(counted) == 1
        assert len(list(train)) + len(list(test)) == 30

    def test_a_changed_file_is_read_anew(self, file, counted):
        load_problems(file, **NAMES)
        with file.open("a") as out:
            out.write("another,1,2\n")
        os.utime(file, ns=(1, 1))
        assert len(list(load_problems(file, **NAMES))) == 31
        assert len(counted) == 2

    def test_other_options_are_another_source(self, file, counted):
        load_problems(file, **NAMES)
        assert len(list(load_problems(file, where="answer == 1", **NAMES))) == 10
        assert len(counted) == 2


class TestFilesElsewhere:
    @pytest.mark.parametrize(
        ("spec", "expected"),
        [
            ("a.csv", "/data/a.csv"),
            ("a.csv:question=problem,limit=5", "/data/a.csv:question=problem,limit=5"),
            ({"path": "a.csv", "split": "test"}, {"path": "/data/a.csv", "split": "test"}),
            ({"spec": "a.csv:limit=5"}, {"spec": "/data/a.csv:limit=5"}),
            ('{"path": "a.csv"}', '{"path": "/data/a.csv"}'),
            (
                {"mix": ["arithmetic", {"path": "a.csv", "weight": 2}]},
                {"mix": ["arithmetic", {"path": "/data/a.csv", "weight": 2}]},
            ),
            ("b.csv:limit=5", "b.csv:limit=5"),
            ({"path": "b.csv"}, {"path": "b.csv"}),
        ],
    )
    def test_a_file_is_named_by_where_it_is_and_all_else_stays(self, spec, expected):
        assert located(spec, lambda name: "/data/a.csv" if name == "a.csv" else None) == expected

    @pytest.mark.parametrize("spec", ["arithmetic", "arithmetic:level=2", "gsm8k", "gsm8k:split=test", "hf:a/b"])
    def test_what_has_a_name_is_not_looked_for(self, spec):
        assert located(spec, lambda name: pytest.fail(name)) == spec
