"""Models: folders, names on the Hugging Face hub, and GGUF files; fetching them, and reading their properties."""

from rstar2_env.models.folder import model_folder

__all__ = ["model_folder"]
