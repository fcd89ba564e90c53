"""``HooksCallback``: calls the hooks of a run as one transformers callback, and saves their state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import TrainerCallback

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import EpisodeEntry
from rstar2_env.core.run_folder.layout import Split

from ....hooks.base import EVENTS, Binds, Hook, KeepsState, Observes, ReadsEpisodes
from ....samplers.base import GroupResult
from .run_state import TrlRunState


class HooksCallback(TrainerCallback):
    """Callback that calls all hooks of a run, in the order of their list.

    Args:
        hooks: The hooks.
        run: The state of the run, which hooks read and change.

    Raises:
        ConfigurationError: A hook needs something that the run does not have.
    """

    def __init__(self, hooks: Sequence[Hook], run: TrlRunState) -> None:
        self._hooks, self._run = list(hooks), run
        for hook in self._hooks:
            if isinstance(hook, Binds):
                hook.bind(run)

    def call(self, event: str, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Call every hook that has a method named ``event``; a hook may return a new control object."""
        for hook in self._hooks:
            method = getattr(hook, event, None)
            if method is not None:
                control = method(args, state, control, **kwargs) or control
        return control

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Pass the results of a rollout's groups to the hooks that observe them."""
        for hook in self._hooks:
            if isinstance(hook, Observes):
                hook.observe(outcomes)

    def wrote(self, split: Split, step: int, line: int, entries: Sequence[EpisodeEntry]) -> None:
        """Pass episodes that were written to the run's folder to the hooks that read them; see ``ReadsEpisodes``.

        ``line`` is the line number of the first of them in the step's file, from 0.
        """
        for hook in self._hooks:
            if isinstance(hook, ReadsEpisodes):
                hook.wrote(split, step, line, entries)

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Call ``on_log`` of every hook; if the logs have metrics of an evaluation, also call ``on_evaluate``."""
        logs = kwargs.get("logs") or {}
        figures = {name: float(value) for name, value in logs.items() if isinstance(value, (int, float))}
        self._run.update_metrics(figures)
        control = self.call("on_log", args, state, control, **kwargs)
        evaluated = {name: value for name, value in figures.items() if name.startswith("eval/")}
        if evaluated:
            control = self.call("on_evaluate", args, state, control, **{**kwargs, "metrics": evaluated})
        return control

    def state_dict(self) -> dict[str, Any]:
        """Return the settings that hooks changed, and the state of each hook that has a state."""
        return {
            "run": self._run.state_dict(),
            "hooks": [hook.state_dict() if isinstance(hook, KeepsState) else None for hook in self._hooks],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state that ``state_dict`` returned.

        Raises:
            ConfigurationError: The state was saved with other hooks.
        """
        if len(state["hooks"]) != len(self._hooks):
            raise ConfigurationError(
                f"The checkpoint was written by a run with {len(state['hooks'])} hooks, and this run has "
                f"{len(self._hooks)}: resume with the same hooks."
            )
        self._run.load_state_dict(state["run"])
        for hook, own in zip(self._hooks, state["hooks"], strict=True):
            if own is not None and isinstance(hook, KeepsState):
                hook.load_state_dict(own)


def _forwarded(event: str) -> Any:
    def on_event(self: HooksCallback, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        return self.call(event, args, state, control, **kwargs)

    on_event.__name__, on_event.__doc__ = event, f"Call ``{event}`` of every hook."
    return on_event


for _event in EVENTS:
    if _event not in vars(HooksCallback):
        setattr(HooksCallback, _event, _forwarded(_event))
