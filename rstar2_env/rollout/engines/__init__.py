"""Engines: transformers or vLLM in the trainer's process, vLLM servers; and their registry."""
