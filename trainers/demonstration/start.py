"""``demo``: runs the demonstration behind ``make train``.

The stages are in the module ``run``, which imports torch and TRL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rstar2_env.core.options.declare import call_with_options
from rstar2_env.core.progress import progress

from ..base import needs_training_stack
from .options import DemoOptions

if TYPE_CHECKING:
    from .run import DemoResult


def demo(*, overwrite: bool = False, **options: Any) -> DemoResult:
    """Create a tiny model, cold-start it on tool-use traces, and train it.

    Args:
        overwrite: Replace the demonstration in the folder, instead of continuing it.
        **options: Fields of ``DemoOptions``.

    Raises:
        ConfigurationError: An option is unknown, or the folder holds something other than a demonstration.
        MissingExtraError: torch, transformers or TRL is not installed.
    """
    chosen = call_with_options("demonstration", DemoOptions, options)
    chosen.check_folder(overwrite=overwrite)
    shown = progress("demonstration: importing torch and TRL", show=chosen.progress)
    with shown, needs_training_stack("The demonstration"):
        from .run import run_demo
    return run_demo(chosen, overwrite=overwrite)
