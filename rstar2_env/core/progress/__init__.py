"""Shows the progress of long operations on stderr or in a notebook: name, finished items, rate and remaining time."""

from rstar2_env.core.progress.activities import ReportProgress, progress, say, waiting
from rstar2_env.core.progress.text import ActivityRow, duration, progress_line

__all__ = ["ActivityRow", "ReportProgress", "duration", "progress", "progress_line", "say", "waiting"]
