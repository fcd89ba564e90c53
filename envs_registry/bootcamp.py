"""``rstar2/Bootcamp-v0``: any object with InternBootcamp's protocol as an environment (arXiv 2508.08636)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from rstar2_env.adapters.bootcamp import Bootcamp, instances, load_bootcamp
from rstar2_env.env.vector import vector_entry_point
from rstar2_env.tools.by_name import ToolChoice

from ._adapted import AdaptedEnv, Grade
from ._congruence import Congruence


class BootcampEnv(AdaptedEnv):
    r"""One instance of a task that follows InternBootcamp's protocol, answered in a turn without a tool call.

    InternBootcamp (arXiv 2508.08636) calls such a task a bootcamp.

    ## Action space
    Any string: the policy's whole turn, which the bootcamp's own ``extract_output`` reads.

    ## Observation space
    Any string: the bootcamp's prompt.

    ## Reward
    The bootcamp's ``verify_score(text, identity)``; if it has none, 1 if ``verify`` accepts the answer, else 0.
    ``correct`` is the result of ``verify``. If the verifier raises an exception the reward is 0, and ``verifier_error``
    names the exception.

    ## Episode end
    ``terminated`` after the first turn without a call: ``answered``, or ``no_answer`` if ``extract_output`` returns
    ``None``. With ``tools``, the episode continues after turns with calls, and can be ``truncated`` as in
    ``rstar2/MathTool-v0``.

    ## Information
    As in ``rstar2/MathTool-v0``; at the end also ``verifier_error`` (an exception's class), if there was one.

    ## Difficulty
    The bootcamp defines the difficulty. The bundled default has linear congruences with a modulus of at most
    ``largest=100`` (in ``bootcamp_options``); an exhaustive search earns 1.0.

    ## Random baseline
    0.08: the player answers each bundled problem, a congruence, with a random number below the modulus.

    ## Version history
    v0: first version.

    Args:
        bootcamp: An object with InternBootcamp's protocol, or the import path ``"package.module:name"`` of such an
            object or of a class, which is called with ``bootcamp_options``. ``None`` means the bundled linear
            congruences.
        bootcamp_options: Arguments of the bundled bootcamp, or of a class that is named by its import path.
        split: "train", "validation" or "test"; a hash of the instance decides to which split it belongs.
        tools: Tools that the policy may call before it answers: ``Tool`` objects, the name ``"python"``, or an MCP
            server (``mcp:./server.py``).
        **options: Arguments of ``ToolEnv``: ``max_turns``, ``dialect``, ...

    Raises:
        ConfigurationError: There is no such object, or it lacks a method of the protocol.
    """

    random_baseline = 0.08

    def __init__(
        self,
        *,
        bootcamp: Bootcamp | str | None = None,
        bootcamp_options: Mapping[str, Any] | None = None,
        split: str = "train",
        tools: Sequence[ToolChoice] = (),
        **options: Any,
    ) -> None:
        self.bootcamp = load_bootcamp(Congruence if bootcamp is None else bootcamp, bootcamp_options or {})
        if options.get("dialect", "rstar2") == "rstar2" and not tools:
            # A bootcamp's prompt itself describes the format of the answer.
            options.setdefault("dialect_options", {"system": "", "instruction": "%s"})
        source = instances(self.bootcamp, bootcamp_options or {}, split)
        super().__init__(source, tools=tools, options=options)

    def grade(self, turn: str) -> Grade:
        """Read and grade the turn with the bootcamp's methods."""
        identity = self.problem.meta.get("identity")
        answer = self.bootcamp.extract_output(turn)
        if answer is None:
            return Grade(None, 0.0, False)
        correct = bool(self.bootcamp.verify(answer, identity))
        scorer = getattr(self.bootcamp, "verify_score", None)
        score = float(scorer(turn, identity)) if callable(scorer) else float(correct)
        return Grade(str(answer), score, correct)

    def random_turn(self, rng: np.random.Generator) -> str:
        """Return a random answer: the bootcamp's ``guess(identity, seed)``, or a number from 0 to 99."""
        guess = getattr(self.bootcamp, "guess", None)
        seed = int(rng.integers(2**31))
        return self.dialect.format_answer(
            str(guess(self.problem.meta.get("identity"), seed) if callable(guess) else seed % 100)
        )


gym.register(
    "rstar2/Bootcamp-v0",
    entry_point="rstar2_env.envs_registry.bootcamp:BootcampEnv",
    vector_entry_point=vector_entry_point("rstar2/Bootcamp-v0"),
)
