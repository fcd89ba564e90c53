"""Audits of graders: reward functions, verifiers and environments of this package and of other frameworks.

from rstar2_env.evaluation.audit import audit

report = audit("grader.py:grade")
"""

from rstar2_env.evaluation.audit.api import audit
from rstar2_env.evaluation.audit.report import AuditFinding, AuditReport

__all__ = ["AuditFinding", "AuditReport", "audit"]
