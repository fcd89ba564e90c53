"""The image and filter of the docker sandbox: their contents, and that both ways to build the image work."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from places import ROOT
from typer.testing import CliRunner

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.sandbox import Job, make_sandbox
from rstar2_env.sandbox.docker import container as docker_container
from rstar2_env.sandbox.docker import host_files
from rstar2_env.sandbox.docker import image as docker_image
from rstar2_env.sandbox.docker.options import DockerOptions
from rstar2_env.sandbox.inside.kernel import syscalls

DANGEROUS = (
    "add_key bpf delete_module finit_module fanotify_init init_module io_uring_setup kexec_load keyctl "
    "open_by_handle_at perf_event_open process_vm_readv process_vm_writev ptrace quotactl reboot request_key "
    "settimeofday swapon syslog userfaultfd acct adjtimex clock_settime iopl ioperm personality vhangup"
)


def allowed() -> set[str]:
    rules = json.loads(docker_container.seccomp_profile())["syscalls"]
    return {name for rule in rules for name in rule["names"] if rule["action"] == "SCMP_ACT_ALLOW"}


def test_the_containers_filter_lets_through_what_a_program_may_call() -> None:
    programs = {entry.split()[0] for text in syscalls.ALLOWED.values() for entry in text.split(",")}
    assert programs - allowed() == set()


def test_the_containers_filter_lets_nothing_dangerous_through() -> None:
    assert allowed() & set(DANGEROUS.split()) == set()


def test_the_containers_filter_lets_through_what_the_layers_of_a_call_need() -> None:
    needed = "mount umount2 pivot_root unshare setns clone mount_setattr landlock_restrict_self seccomp memfd_create"
    assert set(needed.split()) <= allowed()


@pytest.mark.skipif(sys.platform != "linux", reason="an image of this machine's files needs Linux")
def test_an_image_of_this_machine_has_python_the_packages_and_what_they_depend_on() -> None:
    tree = host_files.collect(("sympy",))
    library = f"/usr/local/lib/python{sys.version_info[0]}.{sys.version_info[1]}"
    assert {f"{library}/os.py", f"{library}/site-packages/sympy/__init__.py", tree.entry} <= tree.files.keys()
    assert f"{library}/site-packages/mpmath/__init__.py" in tree.files  # sympy depends on it
    assert not any("/tests/" in place or place.startswith(f"{library}/test/") for place in tree.files)
    assert any(os.path.basename(place).startswith("libc.so") for place in tree.files)
    home = os.path.expanduser("~")
    assert not any(place.startswith(home + "/") for place in (*tree.files, *tree.links))


def test_a_package_that_is_not_installed_is_named() -> None:
    with pytest.raises(ConfigurationError, match="no_such_package"):
        host_files.collect(("no_such_package",))


def test_the_dockerfile_at_the_top_is_the_packages_own() -> None:
    top = ROOT / "docker" / "sandbox" / "Dockerfile"
    if not top.exists():
        pytest.skip("this is no checkout")
    assert top.read_bytes() == Path(docker_image.__file__).with_name("Dockerfile").read_bytes()


@pytest.mark.slow
def test_an_image_is_built_on_a_base_and_runs(docker_options: dict[str, Any]) -> None:
    from rstar2_env.cli.sandbox import app
    from rstar2_env.sandbox.docker import engine as docker_engine

    url, base = docker_options["base_url"], docker_options["image"]
    arguments = ["image", "--tag", "rstar2-sandbox-test:built", "--base", base, "--no-packages", "--base-url", url]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    try:
        with make_sandbox("docker", base_url=url, image="rstar2-sandbox-test:built", workers=1) as sandbox:
            assert sandbox.run(Job("import sympy, numpy\nsympy.sqrt(8)")).value == "2*sqrt(2)"
    finally:
        engine = docker_engine.connect(url)
        engine.remove_image("rstar2-sandbox-test:built", force=True)
        engine.close()


@pytest.mark.slow
def test_a_base_that_cannot_be_had_is_named_with_a_way_out(docker_options: dict[str, Any]) -> None:
    from rstar2_env.cli.sandbox import app

    arguments = ["image", "--base", "no-such-base:1", "--no-packages", "--base-url", docker_options["base_url"]]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert "--from-host" in done.output


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("containers", 0, "integer of at least 1, or None"),
        ("memory_mb", 0.5, "integer of at least 1, or None"),
        ("cpus", 0, "positive"),
        ("image", "", "string of at least 1 character"),
        ("runtime", 3, "string of at least 1 character, or None"),
        ("readable", ("/usr/share",), "image"),
        ("workers", -1, "integer of at least 1, or None"),
    ],
)
def test_a_wrong_option_is_named(option: str, value: object, says: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{option}.*{says}"):
        DockerOptions.from_mapping({option: value})


def test_an_option_that_it_does_not_have_is_named_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"docker sandbox has no option 'container'.*'containers'"):
        DockerOptions.from_mapping({"container": 2})


@pytest.mark.parametrize("url", ["ssh://host", "https://host:2376"])
def test_engines_behind_encryption_of_their_own_are_refused_with_a_way_out(url: str) -> None:
    pytest.importorskip("docker")
    with pytest.raises(ConfigurationError, match="ssh -L"):
        make_sandbox("docker", base_url=url)
