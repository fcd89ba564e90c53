"""The tutorial has all steps, and its files and options exist; tests/test_docs_commands.py reads its commands."""

from __future__ import annotations

import re

from places import DOCS, ROOT

from rstar2_env import trainers
from rstar2_env.doctor.examine import checks

PAGE = "\n".join((DOCS / name).read_text("utf-8") for name in ("rocm.md", "rocm-reference.md"))
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
LINES = [line.strip() for block in BLOCKS for line in re.sub(r"\\\n\s*", " ", block).splitlines()]
CALLED = [line for line in LINES if re.match(r"(rocm|rstar2) [a-z]", line)]


def test_the_page_has_every_step() -> None:
    called = [line.split()[1] for line in CALLED]
    assert called == ["doctor", "demo", "problems", "traces", "sft", "eval", "train", "doctor"]


def test_every_container_with_accelerators_leaves_the_sandbox_all_its_layers() -> None:
    started = [line for line in LINES if "docker run" in line and "/dev/kfd" in line]
    assert len(started) == 2
    for line in started:
        assert {f"{kind}=unconfined" for kind in ("seccomp", "systempaths", "apparmor")} <= set(line.split())


def test_every_file_that_it_names_exists() -> None:
    names = set(re.findall(r"(?:/opt/rstar2-env/)?((?:configs|docker|tests)/[\w./]+\w)", PAGE))
    assert len(names) > 8
    assert {name for name in names if not (ROOT / name).exists()} == {"docker/Dockerfile.rocm_base"}, "vLLM's own"


def test_every_option_and_check_that_it_names_exists() -> None:
    recipe, options = trainers.find_recipe("grpo_roc")
    chosen = list(re.findall(r"--set ([\w.]+=\S+)`", PAGE))
    assert chosen == ["engine.sleep=false"]
    recipe.configure(options, {"model": "m", "engine": "vllm", "engine_options": {"sleep": False}})
    told = PAGE[PAGE.index("## When it fails") : PAGE.index("## What was run")]
    names = {check.__name__ for check in checks()}
    assert {"vllm_build", "driver_access", "visible_devices", "torch_build", "aiter", "cuda_packages"} <= names
    assert set(re.findall(r"`([a-z]+_[a-z]+)`", told)) <= names


def test_the_images_variables_are_those_of_the_table() -> None:
    image = (ROOT / "docker" / "rocm" / "Dockerfile").read_text()
    set_there = dict(re.findall(r"^(?:ENV|   ) ([A-Z_]+)=(\w+)", image, re.MULTILINE))
    table = dict(re.findall(r"^\| `([A-Z_]+)` \| (\w+) \|", PAGE, re.MULTILINE))
    assert {name: value for name, value in set_there.items() if name != "VLLM_NO_USAGE_STATS"}.items() <= table.items()
    assert len(set_there) == 9
