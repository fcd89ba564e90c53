"""Tool-use traces for a cold start (supervised fine-tuning before reinforcement learning), and mistakes in them."""
