"""The viewer: run folders indexed on disk, served as a local web page, exported as one file, shown in a terminal.

Covered: everything that reads runs for people (``rstar2 view``, ``rstar2 show``). Not covered: the format of a run's
folder (``rstar2_env.core.run_folder``), and playing or grading again (``rstar2_env.evaluation.stored``).
"""
