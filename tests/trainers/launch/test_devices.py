"""Devices are read as they are written, and shown to a process alone."""

from __future__ import annotations

import os

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.launch.devices import Devices, read_devices


@pytest.mark.parametrize(
    ("text", "numbers"), [("0-3", (0, 1, 2, 3)), ("4", (4,)), ("0,2,5", (0, 2, 5)), ("6-7, 1", (6, 7, 1))]
)
def test_numbers_and_ranges(text: str, numbers: tuple[int, ...]) -> None:
    assert read_devices(text).numbers == numbers


@pytest.mark.parametrize("text", ["", "a", "3-1", "1,,2", "0-", "-1", "1,1", "0-2,2"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"write 0-3|twice"):
        read_devices(text)


def test_a_core_that_this_process_may_not_use_is_refused() -> None:
    absent = max(os.sched_getaffinity(0)) + 1
    with pytest.raises(ConfigurationError, match=f"not allowed to use the CPU core {absent}"):
        read_devices(str(absent), cores=True)


def test_numbers_count_among_the_devices_that_this_process_sees() -> None:
    shown = Devices((0, 2)).environment({"CUDA_VISIBLE_DEVICES": "4,5,6,7"})
    assert shown == {"CUDA_VISIBLE_DEVICES": "4,6"}
    assert Devices((1,)).environment({}) == {"CUDA_VISIBLE_DEVICES": "1"}


def test_both_variables_agree_where_both_are_set() -> None:
    outer = {"CUDA_VISIBLE_DEVICES": "4,5", "HIP_VISIBLE_DEVICES": "4,5"}
    assert Devices((1,)).environment(outer) == {"CUDA_VISIBLE_DEVICES": "5", "HIP_VISIBLE_DEVICES": "5"}


BOTH = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


@pytest.mark.parametrize(
    ("outer", "shown"),
    [
        ({"HIP_VISIBLE_DEVICES": "4,5"}, "5"),
        ({"ROCR_VISIBLE_DEVICES": "4,5"}, "1"),
        ({"ROCR_VISIBLE_DEVICES": "4,5,6", "HIP_VISIBLE_DEVICES": "0,2"}, "2"),
        ({"ROCR_VISIBLE_DEVICES": "4,5,6", "CUDA_VISIBLE_DEVICES": "0,2"}, "2"),
        ({"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "4,5"}, "5"),
    ],
)
def test_what_an_amd_machine_hides_is_mapped_once_and_written_to_both_variables(
    outer: dict[str, str], shown: str
) -> None:
    assert Devices((1,)).environment(outer) == dict.fromkeys(BOTH, shown)


def test_a_device_that_the_runtime_hides_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="ROCR_VISIBLE_DEVICES=0,1 allows 2"):
        Devices((2,)).environment({"ROCR_VISIBLE_DEVICES": "0,1"})


def test_variables_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="CUDA_VISIBLE_DEVICES=0,1 and HIP_VISIBLE_DEVICES=4,5 select"):
        Devices((1,)).environment({"CUDA_VISIBLE_DEVICES": "0,1", "HIP_VISIBLE_DEVICES": "4,5"})


def test_a_device_that_is_hidden_from_this_process_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="The device 2 does not exist"):
        Devices((2,)).environment({"CUDA_VISIBLE_DEVICES": "0,1"})


def test_cores_come_with_as_many_threads_and_without_accelerators() -> None:
    found = Devices((0, 1), cores=True).environment({"CUDA_VISIBLE_DEVICES": "0"})
    assert (found["OMP_NUM_THREADS"], found["CUDA_VISIBLE_DEVICES"]) == ("2", "")


def test_engines_of_several_devices_take_them_in_order() -> None:
    assert [str(part) for part in read_devices("0-3").split(2)] == ["0,1", "2,3"]
    with pytest.raises(ConfigurationError, match="cannot be divided into engines with 3"):
        read_devices("0-3").split(3)
