"""The section of docs/troubleshooting.md that explains an error.

An exception class for one kind of mistake names its section itself; otherwise the section belongs to the part of the
package that raised the error. Not covered: the message, which explains what was expected and what to do without the
docs.
"""

from __future__ import annotations

from types import FrameType

_OURS = "rstar2_env"

_SECTIONS = {
    "rstar2_env": "options",
    "rstar2_env.adapters": "bridges",
    "rstar2_env.adapters.ray": "cluster",
    "rstar2_env.agents": "agents",
    "rstar2_env.core.net.chat": "endpoints",
    "rstar2_env.core.net.chat_endpoint": "endpoints",
    "rstar2_env.core.files.config_file": "configuration-files",
    "rstar2_env.core.files.folders": "run-folder",
    "rstar2_env.core.files.json_lines": "run-folder",
    "rstar2_env.core.model_name": "models",
    "rstar2_env.core.options.user_code": "own-code",
    "rstar2_env.core.net.ray_cluster": "cluster",
    "rstar2_env.core.run_folder": "run-folder",
    "rstar2_env.dialects": "environments",
    "rstar2_env.doctor": "machine",
    "rstar2_env.env": "environments",
    "rstar2_env.envs_registry": "environments",
    "rstar2_env.evaluation": "evaluation",
    "rstar2_env.evaluation.comparison": "stored-runs",
    "rstar2_env.evaluation.judges": "agents",
    "rstar2_env.evaluation.stored": "stored-runs",
    "rstar2_env.evaluation.validation": "validation",
    "rstar2_env.problems": "problems",
    "rstar2_env.rewards": "rewards",
    "rstar2_env.rollout": "rollout",
    "rstar2_env.rollout.engines": "engines",
    "rstar2_env.rollout.pretrained": "models",
    "rstar2_env.rollout.scheduling": "engines",
    "rstar2_env.sandbox": "sandbox",
    "rstar2_env.sandbox.docker": "docker",
    "rstar2_env.sandbox.fleet": "sandbox-service",
    "rstar2_env.sandbox.ray": "cluster",
    "rstar2_env.sandbox.remote": "sandbox-service",
    "rstar2_env.sandbox.serve": "sandbox-service",
    "rstar2_env.search": "agents",
    "rstar2_env.testing": "testing",
    "rstar2_env.tools": "environments",
    "rstar2_env.traces": "cold-start",
    "rstar2_env.trainers": "training",
    "rstar2_env.trainers.advantages": "parts",
    "rstar2_env.trainers.backends.trl.adapters": "models",
    "rstar2_env.trainers.backends.trl.weights.engine": "engines",
    "rstar2_env.trainers.backends.trl.sharding.fsdp2": "sharding",
    "rstar2_env.trainers.backends.trl.model": "models",
    "rstar2_env.trainers.backends.trl.run.refused_options": "training-options",
    "rstar2_env.trainers.backends.trl.sft": "cold-start",
    "rstar2_env.trainers.backends.trl.sharded_trainer": "sharding",
    "rstar2_env.trainers.backends.trl.sharding.choice": "sharding",
    "rstar2_env.trainers.backends.trl.sharding.shards": "sharding",
    "rstar2_env.trainers.options.cold_start": "cold-start",
    "rstar2_env.trainers.options.config": "training-options",
    "rstar2_env.trainers.options.files": "configuration-files",
    "rstar2_env.trainers.queue": "playing-ahead",
    "rstar2_env.trainers.export": "models",
    "rstar2_env.trainers.hooks": "parts",
    "rstar2_env.trainers.launch": "launch",
    "rstar2_env.trainers.options.layers": "training-options",
    "rstar2_env.trainers.losses": "parts",
    "rstar2_env.trainers.options.names": "training-options",
    "rstar2_env.trainers.options.parts": "parts",
    "rstar2_env.trainers.pipeline": "pipelines",
    "rstar2_env.trainers.plan": "machine",
    "rstar2_env.trainers.record.resume": "resume",
    "rstar2_env.trainers.rollouts": "parts",
    "rstar2_env.trainers.samplers": "parts",
    "rstar2_env.trainers.step.selection": "parts",
    "rstar2_env.trainers.selectors": "parts",
    "rstar2_env.trainers.options.slots": "parts",
    "rstar2_env.verification": "verification",
    "rstar2_env.view": "viewer",
    "rstar2_env.worlds": "environments",
    "rstar2_env.wrappers": "wrappers",
}
"""The section of each package and module; others use the section of the nearest package above them."""


def section_of(module: str) -> str:
    """Return the section for errors that a module raises; empty if the module is not in this package."""
    if module != _OURS and not module.startswith(f"{_OURS}."):
        return ""
    while module not in _SECTIONS:
        module = module.rpartition(".")[0]
    return _SECTIONS[module]


def raised_in(error: BaseException, frame: FrameType | None) -> str:
    """Return the module that raises an error: the first frame above ``frame`` that is not the error's ``__init__``."""
    while frame is not None and frame.f_code.co_name == "__init__" and frame.f_locals.get("self") is error:
        frame = frame.f_back
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))
