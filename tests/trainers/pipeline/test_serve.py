"""What the option ``serve`` of a stage means: which servers, with which words, and what does not go with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from served import write_filter
from vllm_serve import needs_vllm

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.evaluation.play.policy_crew import PolicyOptions
from rstar2_env.trainers.pipeline.file import read_pipeline
from rstar2_env.trainers.pipeline.plan import PipelinePlan
from rstar2_env.trainers.pipeline.run import PipelineRun
from rstar2_env.trainers.pipeline.serve import Serve, words_of
from rstar2_env.trainers.pipeline.table import plan_table

ENGINE = {"sleep": True, "max_model_len": 4096, "kv_cache_gib": 0.5, "enforce_eager": True, "quantization": None}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"serve": "0-x"}, r"stage 'hard': '0-x' does not name devices: write 0-3, or 0,2,5 \(serve.devices"),
        ({"serve": "0,0"}, r"stage 'hard': .*'0,0' names a device twice.*\(serve.devices"),
        (
            {"serve": {"devices": "0-2", "tensor_parallel": 2}},
            r"3 devices \(0,1,2\) cannot be divided into engines with 2",
        ),
        ({"serve": {"device": "0-2"}}, r"stage 'hard'.* no option 'serve.device'. Did you mean 'devices'"),
        ({"serve": {"devices": "0", "cpu": True, "nodes": 2}}, r"set serve\.nodes to 1"),
        ({"serve": "0", "engine": "transformers"}, r"requires engine: vllm; got engine: transformers"),
        ({"serve": "0", "engine_options": {"tensor_parallel_size": 2}}, r"use its option tensor_parallel instead"),
        (
            {"serve": "0", "engine": "vllm-server", "engine_options": {"base_urls": ["http://a:1"]}},
            r"base_urls cannot be combined with the option serve",
        ),
    ],
)
def test_a_mistake_shows_before_anything_runs(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    file = write_filter(tmp_path, tmp_path / "model", tmp_path / "problems.jsonl", **options)
    with pytest.raises(ConfigurationError, match=message):
        PipelinePlan(read_pipeline(file), tmp_path / "run").check()


def test_a_plan_counts_the_devices_that_serve_and_starts_nothing(tmp_path: Path) -> None:
    file = write_filter(tmp_path, Path("Qwen/Qwen3-14B"), Path("dapo-math-17k"), serve="0-3")
    pipeline = read_pipeline(file, {"machine": {"gpus": 8, "gpu": "mi300x"}})
    tables = plan_table(PipelineRun(PipelinePlan(pipeline, tmp_path / "run")))
    assert "on 4 of 8 devices" in tables.costs[0][-1]
    assert not (tmp_path / "run").exists()


def test_a_server_is_given_the_engines_options_in_its_own_words() -> None:
    policy = PolicyOptions(max_in_flight=64, revision="main", trust_remote_code=True)
    words = ["--max-model-len", "4096", "--enforce-eager", "--kv-cache-memory-bytes", str(1 << 29)]
    words += ["--max-num-seqs", "64", "--dtype", "bfloat16", "--revision", "main", "--trust-remote-code"]
    assert words_of(ENGINE, policy, cpu=False) == words
    more = words_of({"max_rows": 8, "enable_prefix_caching": False, "hf_overrides": {"a": 1}}, policy, cpu=True)
    assert more[:6] == ["--no-enable-prefix-caching", "--hf-overrides", '{"a": 1}', "--max-num-seqs", "8", "--dtype"]
    assert more[6] == "float32"
    assert words_of({}, PolicyOptions(dtype="float16"), cpu=False)[-1] == "float16"


@pytest.mark.slow
def test_vllm_reads_these_words_as_the_engine_reads_the_options() -> None:
    needs_vllm()
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    try:
        from vllm.entrypoints.launchers.cli_args import make_arg_parser
    except ModuleNotFoundError:  # before 0.32
        from vllm.entrypoints.openai.cli_args import make_arg_parser

    options = {"enable_prefix_caching": False, "max_model_len": 4096, "enforce_eager": True, "block_size": 32}
    (command,) = Serve("0").commands("m", words_of({**options, "kv_cache_gib": 0.5}, PolicyOptions(), cpu=False))
    read = make_arg_parser(FlexibleArgumentParser()).parse_args(list(command.words[3:]))
    wanted = {**options, "model": "m", "dtype": "bfloat16", "max_num_seqs": 256, "kv_cache_memory_bytes": 1 << 29}
    wanted |= {"host": "127.0.0.1", "port": 8001}
    assert {name: getattr(read, name) for name in wanted} == wanted


def test_each_server_has_its_devices_and_its_port() -> None:
    found = Serve("0-3", tensor_parallel=2, server_options="--a 1").commands("m", ["--b", "2"])
    assert "VLLM_USE_V2_MODEL_RUNNER" not in found[0].variables
    assert Serve("0").commands("m", [], cuts=True)[0].variables["VLLM_USE_V2_MODEL_RUNNER"] == "0"
    assert [(str(one.devices), one.url) for one in found] == [
        ("0,1", "http://127.0.0.1:8001"),
        ("2,3", "http://127.0.0.1:8002"),
    ]
    assert all(list(one.words[-6:]) == ["--tensor-parallel-size", "2", "--b", "2", "--a", "1"] for one in found)


def test_a_job_whose_machines_cannot_be_asked_for_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"scontrol cannot be run: No such file or directory"):
        Serve("0", nodes=2).commands("m", [])
