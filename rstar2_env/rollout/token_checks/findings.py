"""The table of token checks with the severity of each check, and the summary of their findings.

A check whose name also occurs in OpenEnv's token capture (RFC 008, ``capture/validate.py``) has the same meaning there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

_EXAMPLES = 3


class Severity(StrEnum):
    """Severity of a token check's finding."""

    FATAL = "fatal"
    """Training would use data that differs from the played episodes."""
    WARN = "warn"
    """Training is correct, but something is probably wrong or lost."""
    INFO = "info"
    """The finding needs no action."""


@dataclass(frozen=True, slots=True)
class TokenCheck:
    """Description of a token check.

    Attributes:
        severity: Severity of the check's findings.
        what: Description of the finding.
    """

    severity: Severity
    what: str


_F, _W, _I = Severity.FATAL, Severity.WARN, Severity.INFO

ROW_CHECKS: Mapping[str, TokenCheck] = {
    "no_prompt_ids": TokenCheck(_F, "the row does not have a prompt"),
    "empty_response": TokenCheck(_F, "the row does not have a token after the prompt"),
    "length_mismatch": TokenCheck(
        _F,
        "the number of entries of the mask, the advantages or the ratios differs from the number of tokens "
        "of the completion",
    ),
    "no_logprobs": TokenCheck(_F, "the row has no log-probabilities"),
    "logprob_misalign": TokenCheck(
        _F, "the number of log-probabilities differs from the number of tokens of the completion"
    ),
    "invalid_token_id": TokenCheck(_F, "a token id is negative, or beyond the vocabulary"),
    "invalid_loss_mask": TokenCheck(_F, "the mask has values other than 0 and 1"),
    "nothing_trainable": TokenCheck(_F, "the mask marks no token of the policy"),
    "invalid_logprob": TokenCheck(_F, "a log-probability of a policy token is not a finite number"),
    "positive_logprob": TokenCheck(_F, "a log-probability of a policy token is above 0"),
    "masked_has_logprob": TokenCheck(_F, "an environment token has a log-probability"),
    "no_turns": TokenCheck(_F, "the episode of the row has no turn"),
    "turn_spans": TokenCheck(
        _F, "the mask differs from the turns: it must be 1 on exactly the tokens of the policy's turns"
    ),
    "text_mismatch": TokenCheck(_F, "the tokens of a turn do not decode to the text in the conversation"),
    "prompt_mismatch": TokenCheck(_F, "the prompt differs from the chat template's output for the conversation"),
    "environment_tokens": TokenCheck(_F, "the environment's tokens differ from the chat template's output"),
    "empty_completion": TokenCheck(_W, "a turn has no token"),
    "truncated_turn": TokenCheck(_W, "a turn before the last one was cut: it does not end with an end-of-turn token"),
    "degenerate_rollout": TokenCheck(_W, "a turn repeats one or two tokens at least sixteen times"),
    "no_sampled_ids": TokenCheck(_W, "the run kept no tokens (keep_tokens), so only texts can be checked"),
    "ratio_drift": TokenCheck(
        _W, "the log-probabilities of trainer and engine differ by more than 0.1 nats on average"
    ),
    "no_tokenizer": TokenCheck(_W, "no tokenizer was found, so texts, prompts and the vocabulary were not checked"),
    "certain_tokens": TokenCheck(_I, "a policy token was sampled with probability 1"),
    "not_canonical": TokenCheck(
        _I, "a turn's tokens differ from its re-tokenized text; training on the sampled ids avoids this drift"
    ),
}
"""The checks of training rows, by name."""

TEMPLATE_CHECKS: Mapping[str, TokenCheck] = {
    "no_chat_template": TokenCheck(_F, "there is no readable chat template"),
    "no_stop_token": TokenCheck(_F, "no token ends a turn"),
    "turn_not_closed": TokenCheck(_F, "a turn does not end with a token that stops an engine"),
    "joined_ids": TokenCheck(_F, "ids joined turn by turn do not decode to the conversation"),
    "wrong_mask": TokenCheck(
        _F, "the mask of the conversation differs from the policy's turns: it must be 1 on exactly their tokens"
    ),
    "injection": TokenCheck(_F, "a special token in a tool's output becomes a special token in the prompt"),
    "invalid_token_id": TokenCheck(_F, "the tokenizer has ids beyond the model's vocabulary"),
    "lossy_text": TokenCheck(_W, "a text changes when it is tokenized and decoded"),
    "no_system_role": TokenCheck(_W, "the template accepts no system message: remove it (dialect_options.system)"),
    "not_a_stop": TokenCheck(_W, "the model's generation_config does not stop at the template's end of turn"),
    "changes_by_day": TokenCheck(_W, "the template writes today's date: set a fixed date with chat_template_options"),
    "rewrites_history": TokenCheck(
        _I, "a later message changes how earlier ones are rendered, so a new rendering would have other tokens"
    ),
    "strips_text": TokenCheck(_I, "the template strips white space around texts"),
    "default_system": TokenCheck(_I, "the template adds a default system message"),
}
"""The checks of a tokenizer with its chat template, by name."""


@dataclass(frozen=True, slots=True)
class TokenFinding:
    """One violation that a token check found.

    Attributes:
        check: Name of the violated check.
        where: The row or the conversation that violates the check.
        detail: Details of the violation.
    """

    check: str
    where: str
    detail: str = ""


@dataclass(slots=True)
class Findings:
    """The findings of several checks: their number by check, and the first few of each check.

    Args:
        checks: The checks that were run.

    Attributes:
        counts: Number of findings of each check.
        examples: The first findings of each check.
        looked_at: Number of checked rows or conversations.
    """

    checks: Mapping[str, TokenCheck]
    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[TokenFinding]] = field(default_factory=dict)
    looked_at: int = 0

    def add(self, findings: Iterable[TokenFinding]) -> None:
        """Count the findings of one row or conversation."""
        self.looked_at += 1
        for finding in findings:
            self.counts[finding.check] = self.counts.get(finding.check, 0) + 1
            examples = self.examples.setdefault(finding.check, [])
            if len(examples) < _EXAMPLES:
                examples.append(finding)

    def of(self, severity: Severity) -> list[str]:
        """Return the names of the checks with findings of this severity, in the order of the checks."""
        return [name for name, check in self.checks.items() if check.severity is severity and name in self.counts]

    @property
    def fit(self) -> bool:
        """Whether there is no fatal finding, so that the run or the model is fit for training."""
        return not self.of(Severity.FATAL)

    @property
    def verdict(self) -> str:
        """One sentence that summarizes all findings."""
        fatal, warnings = self.of(Severity.FATAL), self.of(Severity.WARN)
        if fatal:
            return f"Not fit for training: {', '.join(fatal)}."
        if not self.looked_at:
            return f"There was nothing to check{f': {warnings[0]}' if warnings else ''}."
        if warnings:
            return f"Fit for training, with warnings: {', '.join(warnings)}."
        return "Fit for training: all checks passed."
