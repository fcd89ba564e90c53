"""Answer verification: is this text the gold answer? Cheap where it can be, in killable workers where it must be."""

from rstar2_env.verify.api import averify, verify, verify_many, verify_response
from rstar2_env.verify.extract import extract_boxed, last_boxed
from rstar2_env.verify.response import extract_answer
from rstar2_env.verify.verdict import Reason, Verdict

__all__ = [
    "Reason",
    "Verdict",
    "averify",
    "extract_answer",
    "extract_boxed",
    "last_boxed",
    "verify",
    "verify_many",
    "verify_response",
]
