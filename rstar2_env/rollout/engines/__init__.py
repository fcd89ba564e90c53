"""Engines: transformers in the trainer's process, vLLM in it, vLLM servers; and their registry."""
