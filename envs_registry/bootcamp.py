"""``rstar2/Bootcamp-v0``: any object with InternBootcamp's protocol as an environment (F27)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym

from rstar2_env.adapters.bootcamp import Bootcamp, instances, load_bootcamp
from rstar2_env.env.vector import vector_entry_point
from rstar2_env.tools import Tool

from ._adapted import AdaptedEnv, Grade

_DEFAULT = "rstar2_env.envs_registry._congruence:Congruence"


class BootcampEnv(AdaptedEnv):
    r"""One instance of a bootcamp, answered in one turn without a call.

    ## Action space
    Any string: the policy's whole turn, which the bootcamp's own ``extract_output`` reads.

    ## Observation space
    Any string: the bootcamp's prompt.

    ## Reward
    The bootcamp's ``verify_score(text, identity)``, or, where it has none, 1 if ``verify`` says so, else 0. ``correct``
    is what ``verify`` says. A verifier that raises on what the policy wrote earns 0, and ``verifier_error`` names it.

    ## Episode end
    ``terminated`` after the first turn without a call: ``answered``, or ``no_answer`` where ``extract_output`` gives
    ``None``. With ``tools``, turns with calls go on, as in ``rstar2/MathTool-v0``; so does ``truncated``.

    ## Information
    As in ``rstar2/MathTool-v0``; at the end ``verifier_error`` (an exception's class) where there was one.

    ## Difficulty
    That of the bootcamp. The bundled default is of linear congruences modulo at most ``largest=100``
    (``bootcamp_options``); a search earns 1.0.

    ## Random baseline
    0.08: in the bundled default, a random number below the modulus.

    ## Version history
    v0: the first.

    Args:
        bootcamp: The object, or where it is, as ``"package.module:name"``; a class is called with
            ``bootcamp_options``.
        bootcamp_options: Of a class given by name.
        split: "train", "validation" or "test"; a hash of the instance decides.
        tools: Tools that the policy may call on the way.
        **options: What ``ToolEnv`` takes: ``max_turns``, ``dialect``, ...

    Raises:
        ConfigurationError: There is no such object, or it lacks a method of the protocol.
    """

    random_baseline = 0.08

    def __init__(
        self,
        *,
        bootcamp: Bootcamp | str = _DEFAULT,
        bootcamp_options: Mapping[str, Any] | None = None,
        split: str = "train",
        tools: Sequence[Tool] = (),
        **options: Any,
    ) -> None:
        self.bootcamp = load_bootcamp(bootcamp, bootcamp_options or {})
        if options.get("dialect", "rstar2") == "rstar2" and not tools:
            # A bootcamp's prompt says itself how the answer is written.
            options.setdefault("dialect_options", {"system": "", "instruction": "%s"})
        source = instances(self.bootcamp, bootcamp_options or {}, split)
        super().__init__(source, tools=tools, options=options)

    def grade(self, turn: str) -> Grade:
        """Have the bootcamp read and grade the turn."""
        identity = self.problem.meta.get("identity")
        answer = self.bootcamp.extract_output(turn)
        if answer is None:
            return Grade(None, 0.0, False)
        correct = bool(self.bootcamp.verify(answer, identity))
        scorer = getattr(self.bootcamp, "verify_score", None)
        score = float(scorer(turn, identity)) if callable(scorer) else float(correct)
        return Grade(str(answer), score, correct)


gym.register(
    "rstar2/Bootcamp-v0",
    entry_point="rstar2_env.envs_registry.bootcamp:BootcampEnv",
    vector_entry_point=vector_entry_point("rstar2/Bootcamp-v0"),
)
