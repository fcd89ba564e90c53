"""``benchmarks/sandbox_bare.py``: isolated as always, and running nothing."""

from collections.abc import Callable
from types import ModuleType

import pytest

from rstar2_env.sandbox import Job, LocalSandbox


@pytest.mark.slow
def test_no_program_runs_in_it_and_other_sandboxes_run_theirs(benchmark_named: Callable[[str], ModuleType]) -> None:
    with benchmark_named("sandbox_bare").without_python() as bare, LocalSandbox() as whole:
        assert bare.run(Job("print(2)")).stdout == "1\n"
        assert whole.run(Job("print(2)")).stdout == "2\n"
        layers = [{one.name: one.active for one in each.capabilities()} for each in (bare, whole)]
        assert layers[0] == layers[1]
