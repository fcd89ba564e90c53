"""Threads and precision of training on a CPU: by measurement, within the CPU set, never against what the user set."""

import json
from types import SimpleNamespace

import pytest
import torch
from tiny_models import tiny_gemma3
from transformers import LlamaConfig

from rstar2_env import trainers
from rstar2_env.trainers.backends.trl import cpu_speed
from rstar2_env.trainers.backends.trl.cpu_speed import (
    AGAIN_S,
    CpuChoice,
    ThreadWatch,
    choose,
    choose_precision,
    choose_threads,
    chosen_together,
    most_tokens,
    recorded_precision,
    round_seconds,
    stall,
    usable_cpus,
)
from rstar2_env.trainers.options.config import ModelOptions
from rstar2_env.trainers.plan.training_memory import CPU_ROWS_BYTES
from rstar2_env.trainers.ranks import OneProcess

pytestmark = pytest.mark.train


@pytest.fixture(autouse=True)
def same_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def wide(tmp_path):
    """The configuration of a model wide enough to be measured; choosing needs no weights."""
    LlamaConfig(hidden_size=512, num_hidden_layers=1, num_attention_heads=8).save_pretrained(tmp_path / "wide")
    return ModelOptions(path=str(tmp_path / "wide"))


@pytest.fixture
def free(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def taking(seconds, low=1.0):
    """A measurement: seconds by number of threads, and the factor of bfloat16."""
    return lambda threads, dtype: seconds[threads] * (low if dtype is torch.bfloat16 else 1.0)


class TestThreads:
    def test_the_fastest_number_is_chosen(self):
        assert choose_threads(4, taking({1: 4.0, 2: 2.1, 4: 1.2}))[0] == 4
        assert choose_threads(4, taking({1: 1.0, 2: 2.0, 4: 8.0}))[0] == 1

    def test_more_threads_that_gain_nothing_are_not_taken(self):
        assert choose_threads(2, taking({1: 1.05, 2: 1.0}))[0] == 1

    def test_no_number_above_the_cpu_set_is_measured(self):
        assert choose_threads(6, taking(dict.fromkeys((1, 2, 4, 6), 1.0)))[1].keys() == {1, 2, 4, 6}
        assert choose_threads(1, taking({1: 1.0}))[1].keys() == {1}

    def test_the_quota_of_a_container_limits_the_cpus(self, monkeypatch, tmp_path):
        monkeypatch.setattr(cpu_speed, "_QUOTA", tmp_path / "cpu.max")
        unlimited = usable_cpus()
        (tmp_path / "cpu.max").write_text("50000 100000\n")
        assert usable_cpus() == 1
        (tmp_path / "cpu.max").write_text("max 100000\n")
        assert usable_cpus() == unlimited

    def test_a_measurement_is_of_that_number_and_leaves_torchs_own(self, monkeypatch):
        torch.set_num_threads(1)
        seen = []
        monkeypatch.setattr(cpu_speed, "_round", lambda *tensors: seen.append(torch.get_num_threads()))
        monkeypatch.setattr(cpu_speed, "_MEASURE_S", 0.0)
        assert round_seconds(2, torch.float32) > 0
        assert (set(seen), torch.get_num_threads()) == ({2}, 1)

    def test_a_stall_is_said_in_one_line(self):
        assert stall({1: 1.0, 2: 0.6}) == ""
        line = CpuChoice(1, "float32", {1: 1.0, 2: 10.0}).line
        assert "1 thread." in line
        assert "2 threads compute only 0.10 times as fast as 1 thread" in line
        assert "\n" not in line


class TestPrecision:
    def test_bfloat16_is_chosen_if_it_is_native_and_faster(self, monkeypatch):
        monkeypatch.setattr(cpu_speed, "native_bfloat16", lambda: True)
        assert choose_precision(1, taking({1: 1.0}, low=0.5)) == "bfloat16"
        assert choose_precision(1, taking({1: 1.0}, low=0.95)) == "float32"
        monkeypatch.setattr(cpu_speed, "native_bfloat16", lambda: False)
        assert choose_precision(1, taking({1: 1.0}, low=0.5)) == "float32"

    def test_a_measured_precision_replaces_auto_alone(self, wide, free, monkeypatch):
        monkeypatch.setattr(cpu_speed, "choose_precision", lambda threads, measure: "bfloat16")
        monkeypatch.setattr(cpu_speed, "round_seconds", taking(dict.fromkeys(range(64), 1.0)))
        assert chosen_together(wide, None, OneProcess()).precision == wide.dtype == "bfloat16"
        wide.dtype = "float32"
        assert chosen_together(wide, None, OneProcess()).precision == wide.dtype == "float32"

    def test_a_resumed_run_keeps_its_precision(self, wide, free, monkeypatch, tmp_path):
        monkeypatch.setattr(cpu_speed, "choose_precision", lambda threads, measure: "bfloat16")
        (tmp_path / "sft.json").write_text(json.dumps({"cpu": {"precision": "float32"}, "dtype": "auto"}))
        earlier = recorded_precision(tmp_path / "sft.json", "cpu", "precision")
        assert chosen_together(wide, 1, OneProcess(), earlier=earlier).precision == "float32"
        assert wide.dtype == "auto"
        assert recorded_precision(tmp_path / "absent.json", "cpu", "precision") == "float32"


class TestWhatIsSet:
    def test_the_environment_variable_is_respected(self, wide, monkeypatch):
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        torch.set_num_threads(2)
        monkeypatch.setattr(cpu_speed, "round_seconds", taking({1: 1.0, 2: 9.0}))
        choice = choose(wide, None)
        assert (choice.threads, choice.watched, torch.get_num_threads()) == (2, False, 2)

    def test_the_option_is_respected(self, wide, free, monkeypatch):
        monkeypatch.setattr(cpu_speed, "round_seconds", taking({1: 1.0, 2: 9.0}))
        choice = choose(wide, 2)
        assert (choice.threads, choice.watched, torch.get_num_threads()) == (2, False, 2)

    def test_without_either_the_number_is_measured_up_and_down(self, wide, free, monkeypatch):
        monkeypatch.setattr(cpu_speed, "usable_cpus", lambda: 2)
        for before, seconds, chosen in ((2, {1: 1.0, 2: 9.0}, 1), (1, {1: 1.0, 2: 0.5}, 2)):
            torch.set_num_threads(before)
            monkeypatch.setattr(cpu_speed, "round_seconds", taking(seconds))
            choice = choose(wide, None)
            assert (choice.threads, choice.watched, torch.get_num_threads()) == (chosen, True, chosen)

    def test_a_narrow_model_is_not_measured(self, tiny_model, free, monkeypatch):
        monkeypatch.setattr(cpu_speed, "round_seconds", None)
        torch.set_num_threads(2)
        choice = choose(ModelOptions(path=str(tiny_model)), None)
        assert (choice.threads, choice.precision, choice.seconds, choice.watched) == (2, "float32", {}, False)


class TestWhileTrainingRuns:
    def steps(self, watch, clock, seconds):
        clock[0] += seconds
        watch.on_step_end(None, SimpleNamespace(is_world_process_zero=True), None)
        return torch.get_num_threads()

    def test_threads_go_down_and_up_again_with_a_line_at_each_change(self, capsys):
        clock, seconds = [0.0], {1: 1.0, 2: 0.5}
        watch = ThreadWatch(2, taking(seconds), lambda: clock[0])
        torch.set_num_threads(2)
        seconds[2] = 8.0
        assert self.steps(watch, clock, AGAIN_S / 2) == 2
        assert self.steps(watch, clock, AGAIN_S) == 1
        assert "1 thread instead of 2. Now, 2 threads compute only 0.12 times" in capsys.readouterr().err
        assert self.steps(watch, clock, AGAIN_S) == 1
        assert not capsys.readouterr().err
        seconds[2] = 0.5
        assert self.steps(watch, clock, AGAIN_S) == 2
        assert "2 threads instead of 1." in capsys.readouterr().err

    def test_other_processes_print_nothing(self, capsys):
        clock = [0.0]
        watch = ThreadWatch(2, taking({1: 1.0, 2: 9.0}), lambda: clock[0])
        torch.set_num_threads(2)
        clock[0] = AGAIN_S
        watch.on_step_end(None, SimpleNamespace(is_world_process_zero=False), None)
        assert torch.get_num_threads() == 1
        assert not capsys.readouterr().err


def test_a_pass_of_a_large_model_is_smaller(tiny_model):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_model)
    options = ModelOptions(path=str(tiny_model))
    narrow = most_tokens(model, options)
    model.config.num_hidden_layers = 100 * model.config.num_hidden_layers
    assert narrow > 16_384 > most_tokens(model, options)
    assert most_tokens(model, options, CPU_ROWS_BYTES) == pytest.approx(0.75 * most_tokens(model, options), abs=1)
    assert most_tokens(tiny_gemma3(), options) is None  # its sizes are not known


def test_widths_repeat_only_where_each_shape_has_a_kernel_of_its_own():
    assert cpu_speed.width_multiple(ModelOptions(path="m", dtype="bfloat16")) == 32
    assert cpu_speed.width_multiple(ModelOptions(path="m", dtype="float32")) is None


def test_the_record_of_a_cold_start_names_the_choice(tiny_model, tmp_path):
    traces = [{"messages": [{"role": "user", "content": "say a"}, {"role": "assistant", "content": "aaa"}]}]
    options = {"model": str(tiny_model), "progress": False, "save_every": 1, "threads": 1}
    folder = trainers.sft(traces, **options, output_dir=str(tmp_path / "sft"), steps=1)
    record = json.loads((folder / "sft.json").read_text())
    assert record["cpu"] == {"threads": 1, "precision": "float32", "rounds_per_second": {}}
    options["threads"] = 2
    trainers.sft(traces, **options, output_dir=str(folder), steps=2, resume=True)
    assert json.loads((folder / "sft.json").read_text())["cpu"]["threads"] == 2
