"""The viewer: indexes run folders on disk, serves them as a local web page, exports them, shows them in a terminal.

Covered: everything that displays runs to people (``rstar2 view``). Not covered: the format of a run
folder (``rstar2_env.core.run_folder``), and replaying or regrading (``rstar2_env.evaluation.stored``).
"""
