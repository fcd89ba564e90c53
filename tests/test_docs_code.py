"""Every Python block of the documents runs: here, or in the test that is about its page. TOML and YAML blocks load."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import textwrap
import tomllib
from pathlib import Path

import pytest
import yaml
from made_runs import MadeRun, write_evaluation, write_training
from page_blocks import PAGES, Block, fenced
from places import ROOT

BLOCKS = [block for path in PAGES for block in fenced(path) if block.language in ("python", "toml", "yaml")]

ELSEWHERE = {
    ("README.md", ""): "tests/test_docs.py",
    ("CONTRIBUTING.md", ""): "tests/test_docs.py",
    ("docs/getting-started.md", ""): "tests/test_docs.py",
    ("docs/add-a-trainer.md", ""): "tests/trainers/test_add_a_trainer.py",
    ("docs/part-interfaces.md", ""): "tests/trainers/test_add_a_trainer.py",
    ("docs/add-an-environment.md", ""): "tests/envs_registry/test_docs.py",
    ("docs/write-a-puzzle.md", ""): "tests/envs_registry/test_docs.py",
    ("docs/environment-contract.md", ""): "tests/envs_registry/test_docs.py",
    ("docs/agents.md", ""): "tests/agents/test_docs.py",
    ("docs/search-agents.md", ""): "tests/agents/test_docs.py",
    ("docs/problems.md", ""): "tests/rstar2_env/problems/test_docs.py",
    ("docs/problem-families.md", ""): "tests/rstar2_env/problems/test_docs.py",
    ("docs/write-traces.md", ""): "tests/rstar2_env/problems/test_docs.py",
    ("docs/wrappers.md", ""): "tests/rstar2_env/wrappers/test_docs.py",
    ("docs/grpo-roc.md", ""): "tests/rstar2_env/rollout/test_docs.py",
    ("docs/rollout.md", "TransformersEngine(model"): "tests/rstar2_env/rollout/test_docs.py",
    ("docs/scheduler.md", "Scheduler("): "tests/rstar2_env/rollout/test_docs.py",
    ("docs/remote-environments.md", "RayEnvs("): "tests/rstar2_env/adapters/test_ray.py",
    ("docs/run-folder.md", "def lines(path)"): "tests/support/page_reader.py",
    ("docs/sandbox-service.md", 'make_sandbox("remote"'): "tests/rstar2_env/sandbox/serve/test_docs.py",
    ("docs/sandbox-cluster.md", 'make_sandbox("ray"'): "tests/rstar2_env/sandbox/ray/test_provider.py",
    ("docs/trainers.md", "[parts]\nreward"): "tests/trainers/test_docs.py",
    ("docs/training.md", "trainer = trainers.make("): "tests/trainers/test_training_page.py",
    ("docs/options.md", "selector=my_selector"): "tests/trainers/test_training_page.py",
    ("docs/bridge-agents.md", "smolagents.OpenAIModel"): "tests/bridges/test_smolagents.py",
    ("docs/bridge-agents.md", "ToolSession("): "tests/bridges/test_smolagents.py",
    ("docs/bridge-environments.md", "skyrl.register"): "tests/bridges/test_skyrl.py",
    ("docs/bridge-environments.md", 'register("Rstar2TicTacToe-v0"'): "tests/bridges/test_textarena.py",
    ("docs/bridge-environments.md", "make_app("): "tests/bridges/test_nemo_gym.py",
}
"""Page and a text that one of its blocks has (of all of them, where it is empty), and the file that runs it."""

NOT_RUN = {
    ("docs/engines.md", "async def generate(ids, params)"): "signatures, which have no bodies",
}
"""The same, and why it cannot be run."""

HERE: dict[tuple[str, str], str] = {}
"""The same, and the test below."""


def of(page: str, text: str) -> list[Block]:
    """The blocks of a page that have a text."""
    return [block for block in BLOCKS if block.page == page and text in block.text]


def block_of(page: str, text: str):
    """Give a test the one block of a page that has a text."""

    def mark(test):
        HERE[page, text] = test.__name__
        return pytest.mark.parametrize("block", of(page, text), ids=str)(test)

    return mark


def run(block: Block, scope: dict | None = None) -> tuple[dict, list, str]:
    """Run a block; return its names, the values of its bare expressions, and what it printed."""
    scope = {"__name__": "__documented__"} if scope is None else scope
    values, out = [], io.StringIO()
    with contextlib.redirect_stdout(out):
        for statement in ast.parse(block.text).body:
            if isinstance(statement, ast.Expr):
                values.append(eval(compile(ast.Expression(statement.value), str(block), "eval"), scope))
            else:
                exec(compile(ast.Module([statement], []), str(block), "exec"), scope)
    return scope, values, out.getvalue()


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@block_of("docs/verification.md", r'verify(r"\frac{1}{2}", "0.5")')
def test_verdicts_are_as_the_page_says(block):
    _, (half, interval, several, undone), _ = run(block)
    assert (half.correct, half.reason, half.method) == (True, "equal", "number")
    assert interval.correct
    assert (several, undone) == ("different", "no_answer")


@block_of("docs/verification.md", "GoldGrader(verifier=")
def test_a_grader_with_another_verifier(block):
    run(block)  # it asserts by itself


@block_of("docs/diagnosis.md", "from rstar2_env.diagnosis import diagnose")
def test_a_run_is_diagnosed_from_python(block, folder):
    write_training(folder / "runs" / "demo" / "grpo_roc")
    scope, (fields, *_), out = run(block)
    assert fields == (scope["found"].names, scope["found"].silent, scope["found"].not_recorded)
    assert len(out.splitlines()) == len(scope["found"].names)
    assert scope["found"].silent


@block_of("docs/sandbox.md", 'sandbox.run_many([Job("1 / 0")')
def test_a_job_and_several_jobs(block):
    scope, _, _ = run(block)
    assert scope["outcome"].stdout == "42\n"
    assert [str(one.status) for one in scope["outcomes"]] == ["exception", "empty"]


@block_of("docs/sandbox-sessions.md", 'session="an episode"')
def test_jobs_of_a_session(block):
    assert run(block)[2] == "42.0 kept\n"


@block_of("docs/sandbox-provider.md", "class MySandbox(BaseSandbox)")
def test_the_outline_of_a_provider_has_all_that_a_provider_needs(block):
    from rstar2_env.sandbox import PROVIDERS

    try:
        made = run(block)[0]["MySandbox"]
        assert PROVIDERS.get("mine") is made
    finally:
        PROVIDERS._parts.pop("mine", None)
    assert made.__abstractmethods__ == frozenset()


@block_of("docs/sandbox-provider.md", "check_sandbox(")
def test_a_provider_is_given_to_the_suite_as_the_suite_wants_it(block, monkeypatch):
    from rstar2_env import testing
    from rstar2_env.sandbox import PROVIDERS

    taken = []

    def check_sandbox(*given, **options):  # the suite itself takes a minute, and every provider of ours is held to it
        bound = inspect.signature(suite).bind(*given, **options)
        with bound.arguments["make"]() as sandbox:
            assert sandbox.capabilities()
        assert set(bound.arguments.get("skip", ())) <= set(testing.SANDBOX_CHECKS)
        taken.append(bound)

    suite = testing.check_sandbox
    monkeypatch.setattr(testing, "check_sandbox", check_sandbox)
    monkeypatch.setitem(PROVIDERS._parts, "mine", PROVIDERS.get("local"))
    run(block)
    assert len(taken) == 2


@block_of("docs/telemetry.md", "with recording(tracers=provider)")
def test_the_spans_of_a_script_go_to_its_own_provider(block):
    pytest.importorskip("opentelemetry.sdk", reason="needs the extra otel")
    run(block)  # it asserts by itself


@block_of("docs/compare.md", "find_stored(")
def test_two_evaluations_are_compared(block, folder):
    write_evaluation(folder / "runs" / "eval-base")
    write_evaluation(folder / "runs" / "eval-trained", seed=1, right=2.0)
    _, (values,), _ = run(block)
    assert values[0].low > 0
    assert 0 <= values[1] <= 1
    assert len(values[3]) == 3


@block_of("docs/run-folder.md", 'read_run("runs/grpo_roc")')
def test_everything_of_a_run_is_read(block, folder):
    write_training(folder / "runs" / "grpo_roc", MadeRun(steps=20, eval_every=10, tokens=True))
    _, values, _ = run(block)
    ((config, _, finished), metrics, (steps, groups, episodes), (evaluations, held_out), rest) = values
    assert finished
    assert config
    assert len(metrics) >= 20
    assert 3 in steps
    assert len(evaluations) >= 3
    assert all(len(list(part)) for part in (groups, episodes, held_out, rest[0], rest[2], rest[3]))


@block_of("docs/rocm.md", 'read_run("work/run")')
def test_a_run_on_a_gpu_is_read_like_any_other(block, folder):
    write_training(folder / "work" / "run", MadeRun(steps=20, eval_every=10))
    _, values, printed = run(block)
    assert "pass_rate" in printed
    assert list(values[-1])


@block_of("docs/add-a-stage.md", "class Shuffle(CheckedOptions)")
def test_a_stage_of_ones_own_runs_in_a_pipeline(block, folder):
    from cli_runner import run as rstar2

    (folder / "shuffle.py").write_text(block.text)
    lines = [f'{{"question": "What is {n} + 1?", "answer": "{n + 1}"}}\n' for n in range(20)]
    (folder / "problems.jsonl").write_text("".join(lines))
    (folder / "mine.yaml").write_text(
        "stages:\n  mixed: {kind: ./shuffle.py:Shuffle, problems: problems.jsonl, times: 2}\n"
    )
    from rstar2_env.trainers.pipeline.base import STAGES

    try:
        result = rstar2("run", "mine.yaml", "-o", "out")
    finally:
        STAGES._parts.pop("shuffle", None)
    assert result.exit_code == 0, result.output
    written = (folder / "out" / "stages" / "mixed" / "problems.jsonl").read_text().splitlines()
    assert len(written) == 20
    assert [line.index("What") for line in written]
    assert ['"What is 0' in line for line in written] != ['"What is 0' in line for line in lines]


@block_of("docs/audit-findings.md", 'audit("operator:eq"')
def test_a_grader_is_audited(block):
    scope, _, out = run(block)
    assert scope["report"].ok
    assert out == "True 1.0\n"


@block_of("docs/validation.md", "def short_episodes(bench)")
def test_a_check_of_ones_own_is_made(block):
    from rstar2_env.evaluation.validation import validate
    from rstar2_env.evaluation.validation.check import CHECKS

    try:
        run(block)
        short, long = (
            validate(name, level=3, episodes=2, checks=["short_episodes"])
            for name in ("rstar2/MathTool-v0", "rstar2/Connect4-v0")
        )
    finally:
        CHECKS.pop("short_episodes", None)
    assert short.ok
    assert long.named("short_episodes").figures["turns"] > 3
    assert not long.ok


@block_of("docs/mix-a-recipe.md", "MIX = Recipe(")
def test_a_recipe_in_a_file_of_python(block, folder):
    from rstar2_env.trainers import find_recipe

    (folder / "mix.py").write_text(block.text)
    recipe, options = find_recipe("./mix.py:MIX")
    config = recipe.configure(options, {"model": "m"})
    assert (config.rollout.group_size, config.rollout.refill, config.parts.advantage.name) == (16, 2, "rloo")


@block_of("docs/mix-a-recipe.md", "# mix.toml")
def test_a_recipe_in_a_file_of_toml(block, folder):
    from rstar2_env.trainers import find_recipe

    (sampler,) = of("docs/part-interfaces.md", "class HardFirst")
    (folder / "curriculum.py").write_text(sampler.text.replace("HardFirst", "Curriculum"))
    (folder / "mix.toml").write_text(block.text)
    recipe, options = find_recipe("mix.toml")
    config = recipe.configure(options, {"model": "m"})
    assert (config.rollout.group_size, config.parts.advantage.name) == (16, "rloo")
    assert config.parts.selector.name == "roc"


def configured(block: Block, folder: Path):
    """The options of a run with those of a block of TOML over GRPO-RoC's."""
    from rstar2_env.trainers import find_recipe
    from rstar2_env.trainers.options.files import read_config

    (folder / "options.toml").write_text(block.text)
    return find_recipe("grpo_roc")[0].configure({"model": "m"}, read_config("options.toml"))


@block_of("docs/training.md", "[eval]\nwrappers")
def test_wrappers_of_training_and_of_evaluation(block, folder):
    from rstar2_env.wrappers.registry import read_wrappers

    config = configured(block, folder)
    assert [one.name for one in read_wrappers(config.rollout.wrappers)] == ["fault_injection", "reward_shaping"]
    assert [one.name for one in read_wrappers(config.eval.wrappers)] == ["tool_budget"]


@block_of("docs/trainers.md", "judge = ")
def test_a_judge_is_an_option_of_a_run(block, folder):
    assert configured(block, folder).rollout.judge == "model:url=http://localhost:8000/v1,model=NAME"


@block_of("docs/loss-computation.md", 'aggregation = "prompt_mean"')
def test_parts_of_the_loss_are_options_of_a_run(block, folder):
    parts = configured(block, folder).parts
    assert [one.name for one in parts.loss] == ["ppo_clip", "kl", "entropy"]
    assert (parts.aggregation.name, parts.correction.name) == ("prompt_mean", "mask")


@block_of("docs/evaluation.md", "sets:\n  aime24")
def test_the_suite_of_the_page_is_one(block, folder):
    from rstar2_env.evaluation.suite import make_suite, read_suite

    (folder / "suite.yaml").write_text(block.text)
    sets = make_suite(read_suite("suite.yaml")).sets
    assert [options["n"] for options in sets.values()] == [16, 4, 16]


def pipeline(folder: Path, text: str):
    from rstar2_env.trainers.pipeline.file import read_pipeline

    (folder / "pipeline.yaml").write_text(text)
    return read_pipeline(folder / "pipeline.yaml")


@block_of("docs/pipelines.md", "summary: Two stages")
def test_the_pipeline_of_two_stages_is_one(block, folder):
    assert [stage.name for stage in pipeline(folder, block.text).stages()] == ["data", "stage1", "after"]


@block_of("docs/pipelines.md", "rounds: 5")
def test_the_pipeline_with_rounds_is_one(block, folder, monkeypatch):
    from rstar2_env.trainers.pipeline.base import STAGES

    monkeypatch.setitem(STAGES._parts, "my_play", STAGES.get("evaluate"))  # a kind of the reader's own
    names = [stage.name for stage in pipeline(folder, block.text).stages()]
    assert names == ["cold_start", "play", "tune", "check", "after"]


@block_of("docs/pipeline-data.md", "kind: prepare")
def test_the_stage_that_prepares_data_is_one(block, folder):
    (stage,) = pipeline(folder, f"stages:\n{textwrap.indent(block.text, '  ')}").stages()
    assert (stage.name, stage.kind) == ("data", "prepare")


@block_of("docs/bridge-environments.md", "class_name: rstar2_env.adapters.verl.EnvTool")
def test_verls_configuration_names_our_tool(block):
    (tool,) = yaml.safe_load(block.text)["tools"]
    module, _, name = tool["class_name"].rpartition(".")
    source = ast.parse((ROOT / module.replace(".", "/")).with_suffix(".py").read_text("utf-8"))
    assert name in {node.name for node in source.body if isinstance(node, ast.ClassDef)}
    assert tool["config"]["env"] == "rstar2/MathTool-v0"


@block_of("docs/environments.md", "[project.entry-points.")
def test_the_group_of_entry_points_is_the_one_that_is_read(block):
    from rstar2_env.core.options.plugins import GROUP

    assert list(tomllib.loads(block.text)["project"]["entry-points"]) == [GROUP]


def test_every_block_is_run_once_or_says_why_not():
    assert len(BLOCKS) > 60
    claims: dict[Block, list[tuple[str, str]]] = {block: [] for block in BLOCKS}
    empty = []
    for page, text in (*HERE, *ELSEWHERE, *NOT_RUN):
        found = of(page, text)
        empty += [] if len(found) == 1 or (found and not text) else [(page, text, [str(block) for block in found])]
        for block in found:
            claims[block].append((page, text))
    assert empty == [], "an entry is for one block that is there"
    assert {str(block): entries for block, entries in claims.items() if len(entries) != 1} == {}


@pytest.mark.parametrize("entry", sorted({(page, test) for (page, _), test in ELSEWHERE.items()}), ids="-".join)
def test_the_file_that_is_said_to_run_a_page_reads_it(entry):
    page, test = entry
    assert Path(page).name in (ROOT / test).read_text("utf-8")
