"""``DemoOptions``: the options of the demonstration, and the check of its folder, which need no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rstar2_env.core.files.outputs import check_folder, kind_of
from rstar2_env.core.options.declare import check_options, option


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """Options of the demonstration.

    Attributes:
        output_dir: Folder for all output.
        trainers: Names of the trainers; each starts from the same cold start with the same seeds.
        traces: Number of traces for the cold start.
        error_rate: Share of traces whose first call fails and is then corrected.
        wrong_rate: Share of traces that copy a wrong number into the answer, drawn independently of ``error_rate``.
        sft_steps: Number of optimizer steps of the cold start.
        steps: Number of optimizer steps of each trainer.
        learning_rate: Learning rate of each trainer.
        eval_episodes: Number of held-out episodes in each evaluation during training.
        eval_problems: Number of held-out problems in the evaluation at the end.
        eval_samples: Number of episodes for each problem in the evaluation at the end.
        seed: Seed from which every random choice is derived.
        threads: Number of CPU threads of torch; ``None`` keeps torch's setting.
        progress: Show progress bars.
    """

    output_dir: str = "runs/demo"
    trainers: Sequence[str] = option(("grpo_roc",), least=1)
    traces: int = option(4000, least=1)
    error_rate: float = option(0.35, least=0, most=1)
    wrong_rate: float = option(0.3, least=0, most=1)
    sft_steps: int = option(800, least=1)
    steps: int = option(140, least=1)
    learning_rate: float = option(2e-4, above=0)
    eval_episodes: int = option(1024, least=1)
    eval_problems: int = option(64, least=2)
    eval_samples: int = option(16, least=1)
    seed: int = option(0, least=0)
    threads: int | None = option(None, least=1)
    progress: bool = True

    def __post_init__(self) -> None:
        """Check every option.

        Raises:
            ConfigurationError: A value is of the wrong type or out of its range.
        """
        check_options(self)

    def check_folder(self, *, overwrite: bool) -> bool | None:
        """Check that the folder can hold a demonstration.

        Args:
            overwrite: Replace the demonstration in the folder, instead of continuing it.

        Returns:
            ``True`` if the folder holds a demonstration to continue, otherwise ``None``.

        Raises:
            ConfigurationError: The folder holds something other than a demonstration, or cannot be written.
        """
        resume = None if overwrite or kind_of(self.output_dir) != "demo" else True
        check_folder(self.output_dir, "demo", option="output_dir", resume=resume, overwrite=overwrite)
        return resume
