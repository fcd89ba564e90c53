"""Ways of learning from a text environment: recipes by name, and the parts they are made of."""

if __name__ != "rstar2_env.trainers":
    raise ImportError(
        f"This folder is the package rstar2_env.trainers and was imported as {__name__!r}, which would make a second copy "
        "of its registry. Install the distribution (pip install -e .) and import rstar2_env.trainers."
    )
