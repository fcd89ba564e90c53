"""Claims about the commands envs and problems, and about the gallery that is made from the environments."""

from __future__ import annotations

import json
import re
from pathlib import Path

import gymnasium as gym
import pytest
import typer
from places import DOCS
from typer.testing import CliRunner, Result

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.cli import problems
from rstar2_env.cli.envs import envs_command
from rstar2_env.core.episode import Message
from rstar2_env.core.errors import SandboxUnavailableError, UnknownNameError
from rstar2_env.evaluation.cards import OPTIONAL, card, gallery, sample_episode, written
from rstar2_env.sandbox import make_sandbox

PAGE = DOCS / "environments.md"
IDS = sorted(name for name, spec in gym.registry.items() if spec.namespace == "rstar2" and name not in OPTIONAL)
app = typer.Typer()
app.command("envs")(envs_command)
app.add_typer(problems.app, name="problems")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def _sandbox():
    try:
        make_sandbox("local").close()
    except SandboxUnavailableError as error:
        pytest.skip(f"no local sandbox on this machine: {error}")


class TestEnvs:
    def test_the_list_has_every_id_with_its_line_knobs_and_baseline(self):
        listed = json.loads(run("envs", "--json").stdout)
        assert set(IDS) <= set(listed)
        assert listed["rstar2/MathFence-v0"]["knobs"] == {"problems": "arithmetic"}
        assert listed["rstar2/MathFence-v0"]["random_baseline"].startswith("0: ")
        shown = run("envs").output
        for env_id in IDS:
            assert env_id in shown

    @pytest.mark.usefixtures("_sandbox")
    def test_a_card_is_the_docstring_and_an_episode_that_earned_its_reward(self):
        done = run("envs", "rstar2/MathFence-v0")
        assert done.exit_code == 0, done.output
        for words in ("## Action space", "problems:", "**system**", "```python", "Reward 1, answered."):
            assert words in done.output

    def test_the_episode_can_be_left_out(self):
        done = run("envs", "rstar2/MathFence-v0", "--no-sample")
        assert "**user**" not in done.output
        assert json.loads(run("envs", "rstar2/MathFence-v0", "--no-sample", "--json").stdout)["episode"] is None

    def test_an_unknown_id_suggests_the_nearest(self):
        done = run("envs", "rstar2/MathFense-v0")
        assert done.exit_code == 2
        assert "Did you mean 'rstar2/MathFence-v0'" in " ".join(done.output.split())
        with pytest.raises(UnknownNameError):
            card("CartPole-v1")

    def test_the_common_sections_are_told_apart_from_the_arguments(self):
        shown = card("rstar2/MathTool-v0")
        assert "Version history" in shown.sections
        assert "Args:" not in shown.sections["Version history"]
        assert shown.line == "A math problem, a Python tool, and a verifiable reward."

    def test_no_text_can_close_the_fence_that_it_is_shown_in(self):
        shown = written([Message("user", "```\n````python\nx")])
        assert re.findall(r"^`{5,}", shown, re.MULTILINE) == ["`````", "`````"]


@pytest.mark.usefixtures("_sandbox")
class TestGallery:
    @pytest.mark.parametrize("env_id", IDS)
    def test_the_sample_is_the_same_every_time_and_ends(self, env_id):
        first, second = sample_episode(env_id), sample_episode(env_id)
        assert first.messages == second.messages
        assert first.end == "answered"

    def test_the_page_is_up_to_date(self):
        # Made anew with: rstar2 envs --markdown > docs/environments.md
        page = PAGE.read_text("utf-8")
        for made, there in zip(gallery().split("\n## "), page.split("\n## "), strict=True):
            assert made == there


class TestProblems:
    @pytest.fixture
    def files(self, tmp_path):
        train, bench = tmp_path / "train.jsonl", tmp_path / "bench.csv"
        questions = [f"Question {n} asks about one of ten different things in a row" for n in range(5)]
        questions.append("What is the number of ways to put eight balls in boxes")
        train.write_text("".join(json.dumps({"question": q, "answer": 1}) + "\n" for q in questions))
        bench.write_text("problem,answer\nFind the number of ways to put eight balls in boxes!,3\n")
        return train, bench

    def test_decontaminate_writes_what_overlaps_nothing_and_says_why(self, files, tmp_path):
        train, bench = files
        out, report = tmp_path / "clean.jsonl", tmp_path / "why.jsonl"
        command = [
            "problems",
            "decontaminate",
            "--problems",
            train,
            "--against",
            f"{bench}:question=problem",
            "--out",
            out,
        ]
        done = run(*command, "--report", report)
        assert done.exit_code == 0, done.output
        assert len(out.read_text().splitlines()) == 5
        (why,) = map(json.loads, report.read_text().splitlines())
        assert why == {
            "id": "train-6",
            "benchmark": "bench",
            "benchmark_id": "bench-1",
            "words": "the number of ways to put eight balls",
        }
        assert "for bench" in done.output
        again = run(*command)
        assert again.exit_code == 2
        assert "exists already" in " ".join(again.output.split())

    def test_decontaminate_takes_several_benchmarks_and_another_run(self, files, tmp_path):
        train, bench = files
        done = run(
            *("problems", "decontaminate", "--problems", train, "--against", f"{bench}:question=problem", train),
            *("--out", tmp_path / "c.jsonl", "--ngram", "3", "--json"),
        )
        figures = json.loads(done.stdout)
        assert (figures["kept"], figures["dropped"]) == (0, 6)
        assert sum(figures["by_benchmark"].values()) == len(figures["why"]) == 6

    def test_write_makes_jsonl_of_any_source(self, files, tmp_path):
        out = tmp_path / "out.jsonl"
        assert run("problems", "write", f"{files[1]}:question=problem", "--out", out).exit_code == 0
        assert json.loads(out.read_text())["id"] == "bench-1"
        assert run("problems", "write", "arithmetic", "-n", "7", "--out", out, "--overwrite").exit_code == 0
        assert len(out.read_text().splitlines()) == 7

    def test_sources_lists_every_set_with_its_licence(self):
        listed = json.loads(run("problems", "sources", "--json").stdout)
        assert listed["gsm8k"]["licence"] == "mit"
        assert "cc-by-nc-sa-4.0" in run("problems", "sources").output

    def test_stats_tells_how_the_answers_look(self, files):
        figures = json.loads(run("problems", "stats", files[0], "--json").stdout)
        assert (figures["problems"], figures["answers"]) == (6, {"whole number": 6})
