"""Finds the section of docs/troubleshooting.md that explains an error.

An exception class for one kind of mistake names its section itself; otherwise the module that raised the error
determines the section. Not covered: the message, which must be sufficient without the docs: it states what was expected
and how to fix it.
"""

from __future__ import annotations

from types import FrameType

_OURS = "rstar2_env"

MODULES = {
    "agents": ("agents", "evaluation.judges", "search"),
    "bridges": ("adapters",),
    "cluster": ("adapters.ray", "core.net.ray_cluster", "sandbox.ray"),
    "cold-start": ("traces", "trainers.backends.trl.sft", "trainers.options.cold_start"),
    "configuration-files": ("core.files.config_file", "trainers.options.files"),
    "docker": ("sandbox.docker",),
    "endpoints": ("core.net.chat", "core.net.chat_endpoint"),
    "engines": ("rollout.engines", "rollout.scheduling", "trainers.backends.trl.weight_sync.engine"),
    "environments": ("dialects", "env", "envs_registry", "tools", "worlds"),
    "evaluation": ("evaluation",),
    "launch": ("trainers.launch",),
    "machine": ("doctor", "trainers.plan"),
    "mcp-servers": ("adapters.mcp_server", "tools.mcp"),
    "models": (
        "core.model_name",
        "models",
        "rollout.pretrained",
        "trainers.backends.trl.adapters",
        "trainers.backends.trl.model",
        "trainers.export",
    ),
    "own-code": ("core.options.user_code",),
    "parts": (
        "trainers.advantages",
        "trainers.hooks",
        "trainers.losses",
        "trainers.options.parts",
        "trainers.rollouts",
        "trainers.samplers",
        "trainers.step.selection",
        "trainers.selectors",
        "trainers.options.slots",
    ),
    "pipelines": ("trainers.pipeline",),
    "playing-ahead": ("trainers.queue",),
    "problems": ("problems",),
    "resume": ("trainers.record.resume",),
    "rewards": ("rewards",),
    "rollout": ("rollout",),
    "run-folder": ("core.files.outputs", "core.files.json_lines", "core.run_folder"),
    "sandbox": ("sandbox",),
    "sandbox-service": ("sandbox.fleet", "sandbox.remote", "sandbox.serve"),
    "sharding": (
        "trainers.backends.trl.sharding.fsdp2",
        "trainers.backends.trl.sharded_trainer",
        "trainers.backends.trl.sharding.choice",
        "trainers.backends.trl.sharding.shards",
    ),
    "stored-runs": ("evaluation.comparison", "evaluation.stored"),
    "telemetry": ("core.telemetry",),
    "testing": ("testing",),
    "training": ("trainers",),
    "training-options": (
        "trainers.backends.trl.run.refused_options",
        "trainers.options.config",
        "trainers.options.layers",
        "trainers.options.names",
    ),
    "validation": ("evaluation.validation",),
    "verification": ("verification",),
    "viewer": ("view",),
    "wrappers": ("wrappers",),
}
"""For each section of docs/troubleshooting.md, the packages and modules (relative to ``rstar2_env``) whose errors it
explains."""

_SECTIONS = {"rstar2_env": "options"} | {
    f"rstar2_env.{name}": section for section, names in MODULES.items() for name in names
}
"""The section of docs/troubleshooting.md that explains errors of each package and module. For a module without an
entry, it is the section of the nearest enclosing package."""


_FOR_CALLERS = frozenset({"rstar2_env.core.files.given_path"})
"""Modules that check values for other modules; an error from such a check counts as raised by the check's caller."""


def section_of(module: str) -> str:
    """Return the section that explains errors raised by a module; empty for a module outside this package."""
    if module != _OURS and not module.startswith(f"{_OURS}."):
        return ""
    while module not in _SECTIONS:
        module = module.rpartition(".")[0]
    return _SECTIONS[module]


def raised_in(error: BaseException, frame: FrameType | None) -> str:
    """Return the name of the module that raised an error.

    This is the module of the first frame, from ``frame`` outwards, that is neither the error's own ``__init__`` nor in
    a module with checks for other modules (``_FOR_CALLERS``); empty if there is none.
    """
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        own = frame.f_code.co_name == "__init__" and frame.f_locals.get("self") is error
        if not own and module not in _FOR_CALLERS:
            return module
        frame = frame.f_back
    return ""
