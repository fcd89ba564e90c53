"""Progress of long work on stderr or in a notebook: what runs, how far it is, its rate and the time left."""

from rstar2_env.core.progress.activities import ReportProgress, progress, say, waiting
from rstar2_env.core.progress.text import ActivityRow, duration, progress_line

__all__ = ["ActivityRow", "ReportProgress", "duration", "progress", "progress_line", "say", "waiting"]
