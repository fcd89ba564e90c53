"""Models by name: folders, names on the Hugging Face hub, and GGUF files; how to get one, and its properties."""

from rstar2_env.models.folder import model_folder

__all__ = ["model_folder"]
