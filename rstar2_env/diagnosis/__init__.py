"""Finds faults in a training run by named checks, which read the run's folder or the log of another trainer."""

from __future__ import annotations

from rstar2_env.diagnosis.examination import diagnose
from rstar2_env.diagnosis.result import Diagnosis, Finding

__all__ = ["Diagnosis", "Finding", "diagnose"]
