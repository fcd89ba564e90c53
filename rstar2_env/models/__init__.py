"""Models in folders, on the Hugging Face hub and in GGUF files: fetches them, and reads their properties."""

from rstar2_env.models.folder import model_folder

__all__ = ["model_folder"]
