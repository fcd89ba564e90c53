"""Runs the command line as ``python -m rstar2_env.cli``, for interpreters and launchers that run a module."""

from rstar2_env.cli import main

if __name__ == "__main__":
    main()
