"""The viewer: shows runs as a local web page, as an exported HTML file, or in a terminal (``rstar2 view``).

Covered: indexing run folders on disk, and everything that displays runs. Not covered: the format of a run folder
(``rstar2_env.core.run_folder``), and replaying or regrading (``rstar2_env.evaluation.stored``).
"""
