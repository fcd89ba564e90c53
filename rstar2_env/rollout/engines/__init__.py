"""Inference engines: transformers or vLLM in the trainer's process, or vLLM servers; and the registry of engines."""
