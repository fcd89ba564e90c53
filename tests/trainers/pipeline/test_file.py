"""The file of a pipeline: its form, and errors that name file, stage and field."""

from dataclasses import replace

import pytest
from letter_stages import written

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.options.declare import parse_options
from rstar2_env.trainers.pipeline.file import Rounds, read_pipeline
from rstar2_env.trainers.pipeline.places import find_pipeline, presets
from rstar2_env.trainers.pipeline.plan import PipelinePlan


def plan(folder, text, *settings):
    made = PipelinePlan(written(folder, text, **parse_options(settings)), folder / "run")
    made.check()
    return made


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("stages: []", 'letters.yaml: the field "stages" is required'),
        ("stage: {a: {kind: letters}}", "unknown field 'stage'. Did you mean 'stages'?"),
        ("stages: {a: {letter: x}}", "stage 'a': \"kind\" must be one of"),
        ("stages: {a: {kind: leters}}", "stage 'a', field 'kind': There is no kind of stage named 'leters'. Did you"),
        ("stages: {a-b: {kind: letters}}", "stage 'a-b': the name must consist of letters"),
        ("stages: {a: {kind: letters, leter: x}}", "has no option 'leter'. Did you mean 'letter'?"),
        ("stages: {a: {kind: letters, figure: much}}", "stage 'a': figure must be"),
        ("stages: {a: {kind: letters, source: b.letters}, b: {kind: letters}}", "stage 'b', which does not run before"),
        (
            "stages: {a: {kind: letters}, b: {kind: letters, source: a.leters}}",
            "the stage 'a' does not have the output 'leters'",
        ),
        (
            "stages: {abc: {kind: letters}, b: {kind: letters, source: abd.letters}}",
            "there is no stage 'abd'. Did you mean 'abc'",
        ),
        (
            "stages: {a: {kind: data, problems: x.jsonl}, b: {kind: letters, source: a.train}}",
            "must be of the kind letters, but a.train",
        ),
        ("stages: {g: {rounds: 0, stages: {a: {kind: letters}}}}", "rounds 'g': rounds must be"),
        ("stages: {g: {stages: {a: {kind: letters}}}}", 'the field "rounds" is missing'),
        (
            "stages: {g: {rounds: 2, until: b.x > 1, stages: {a: {kind: letters}}}}",
            "expected a criterion STAGE.METRIC",
        ),
        (
            "stages: {g: {rounds: 2, until: often, stages: {a: {kind: letters}}}}",
            "field 'until': A criterion must have the form",
        ),
        ("stages: {a: {kind: letters}, g: {rounds: 2, stages: {a: {kind: letters}}}}", "two stages have the name 'a'"),
        ("stages: {a: {kind: letters}, a: {kind: letters}}", "'a' is listed twice"),
        ("seed: -1\nstages: {a: {kind: letters}}", "seed must be"),
        ("defaults: {lettres: {}}\nstages: {a: {kind: letters}}", "defaults, field 'kind'"),
        ("machine: {gpu: H1000}\nstages: {a: {kind: letters}}", "device type 'H1000' is unknown"),
    ],
)
def test_a_mistake_is_named_with_file_stage_and_field(tmp_path, text, told):
    with pytest.raises(ConfigurationError) as raised:
        plan(tmp_path, text)
    assert told in str(raised.value)
    assert "letters.yaml" in str(raised.value)


def test_dotted_settings_go_over_the_file_and_defaults(tmp_path):
    text = """
defaults: {letters: {letter: d, figure: 2}}
stages: {a: {kind: letters}, g: {rounds: 2, stages: {b: {kind: letters, letter: f}}}}
"""
    made = plan(tmp_path, text, "b.figure=5", "g.rounds=1", "seed=7", "machine.gpus=3")
    assert [step.id for step in made.steps] == ["a", "b-1"]
    a, b = (made.made[name] for name in ("a", "b-1"))
    assert (a.stage.letter, a.stage.figure, a.seed) == ("d", 2.0, 7)
    assert (b.stage.letter, b.stage.figure) == ("f", 5.0)
    assert made.pipeline.machine.gpus == 3


@pytest.mark.parametrize(("setting", "told"), [("aa.letter=y", "the stage 'aa'"), ("a=1", "mapping a.OPTION=VALUE")])
def test_a_setting_of_nothing_is_refused(tmp_path, setting, told):
    with pytest.raises(ConfigurationError, match=told):
        plan(tmp_path, "stages: {a: {kind: letters}}", setting)


def test_another_engine_does_not_get_the_options_of_the_one_below_it(tmp_path):
    text = (
        "defaults: {evaluate: {engine: vllm, engine_options: {sleep: true}}}\n"
        "stages: {a: {kind: evaluate, model: m}, b: {kind: evaluate, model: m}, c: {kind: evaluate, model: m}}"
    )
    settings = [
        "b.engine=vllm-server",
        'b.engine_options.base_urls=["http://n"]',
        "c.engine_options.tensor_parallel_size=2",
    ]
    a, b, c = (made.options for made in read_pipeline(written(tmp_path, text).file, parse_options(settings)).stages())
    assert a["engine_options"] == {"sleep": True}
    assert (b["engine"], list(b["engine_options"])) == ("vllm-server", ["base_urls"])
    assert list(c["engine_options"]) == ["sleep", "tensor_parallel_size"]


def test_the_record_of_a_pipeline_reads_as_the_same_one(tmp_path):
    text = """
{name: n, summary: s, paper: p, seed: 3, machine: {gpus: 2, gpu: H100, assume: {tool_s: 2.5, mean_tokens: 9}},
 stages: {a: {kind: letters}, g: {rounds: 2, until: b.figure > 1, stages: {b: {kind: letters}}}}}
"""
    first = written(tmp_path, text)
    again = tmp_path / "again.json"
    again.write_text(__import__("json").dumps(first.record()))
    assert replace(read_pipeline(again), file=first.file) == first
    assert first.machine.assume.tool_s == 2.5
    assert isinstance(first.items[1], Rounds)


def test_a_pipeline_is_found_by_file_and_by_name(tmp_path):
    written(tmp_path, "stages: {a: {kind: letters}}")
    assert find_pipeline(str(tmp_path / "letters.yaml")) == tmp_path / "letters.yaml"
    assert find_pipeline("tiny_cpu") == find_pipeline("pipelines/tiny_cpu.yaml").resolve() == presets()["tiny_cpu"]
    with pytest.raises(UnknownNameError, match="Did you mean 'tiny_cpu'"):
        find_pipeline("tiny_gpu")


@pytest.mark.parametrize("name", sorted(presets()))
def test_every_preset_can_be_planned(name, tmp_path):
    PipelinePlan(read_pipeline(find_pipeline(name)), tmp_path / "run").check()
