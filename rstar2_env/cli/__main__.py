"""``python -m rstar2_env.cli``: the command line, for interpreters and launchers that run a module."""

from rstar2_env.cli import main

if __name__ == "__main__":
    main()
