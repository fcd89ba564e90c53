"""Invalid options of the ray provider are rejected by name before Ray starts anything."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("ray", reason="Ray is in the extra 'ray'")

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.sandbox import Limits, make_sandbox
from rstar2_env.sandbox.ray.options import RayOptions


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"adress": "auto"}, "'address'"),
        ({"worker": 2}, "'workers'"),
        ({"workers": 0}, "workers"),
        ({"batch": 0}, "batch"),
        ({"retries": -1}, "retries"),
        ({"stall_timeout_s": 1}, "stall_timeout_s"),
        ({"reserve_cpus": -1}, "reserve_cpus"),
        ({"isolation": "tight"}, "isolation"),
        ({"address": "ray://somewhere:10001"}, "address of the cluster itself"),
        ({"address": "somewhere"}, "10.0.0.1:6379"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        make_sandbox("ray", **options)


def test_an_address_where_nobody_answers_is_an_error_at_once() -> None:
    # In a process of its own: other tests may have connected this one to a cluster.
    program = "from rstar2_env.sandbox import make_sandbox; make_sandbox('ray', address='127.0.0.1:1')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=400, check=False)
    error = done.stderr.splitlines()[-2]  # the last one says where the documents explain it
    assert error.startswith("rstar2_env.core.errors.SandboxUnavailableError: The Ray cluster at 127.0.0.1:1")


def test_options_come_back_as_they_were_given() -> None:
    options = RayOptions.from_mapping({"address": "a:1", "retries": 3, "workers": 2, "limits": Limits(file_mb=7)})
    assert RayOptions.from_mapping(options.as_given()) == options
    assert (options.retries, options.local["workers"]) == (3, 2)


def test_folders_to_read_are_looked_for_on_the_nodes_not_here() -> None:
    assert RayOptions.from_mapping({"readable": ("/only/on/the/nodes",)}).local["readable"] == ("/only/on/the/nodes",)
