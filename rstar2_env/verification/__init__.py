"""Compares an answer with the gold answer: in the calling process if that is quick, otherwise in worker processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rstar2_env.core.lazy_names import lazy_names
from rstar2_env.verification.api import averify, gold_fault, verify, verify_many, verify_response
from rstar2_env.verification.named import VERIFIERS, VerifierSpec, make_verifier
from rstar2_env.verification.options import VerifyOptions
from rstar2_env.verification.read.boxed import boxed_answer, extract_boxed, last_boxed, last_boxed_answer
from rstar2_env.verification.verdict import Reason, Verdict
from rstar2_env.verification.verifier import RuleVerifier, Verifier, numeric

if TYPE_CHECKING:
    from rstar2_env.verification.model import ModelVerifier, model_verifier
    from rstar2_env.verification.read.response_answer import extract_answer

__all__ = [
    "VERIFIERS",
    "ModelVerifier",
    "Reason",
    "RuleVerifier",
    "Verdict",
    "Verifier",
    "VerifierSpec",
    "VerifyOptions",
    "averify",
    "boxed_answer",
    "extract_answer",
    "extract_boxed",
    "gold_fault",
    "last_boxed",
    "last_boxed_answer",
    "make_verifier",
    "model_verifier",
    "numeric",
    "verify",
    "verify_many",
    "verify_response",
]


# Imported on first use: the judge loads an HTTP client and SQLite, extraction compiles large patterns.
_WHERE = {"ModelVerifier": "model", "extract_answer": "read.response_answer", "model_verifier": "model"}

if not TYPE_CHECKING:  # with it, a type checker would accept any name
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
