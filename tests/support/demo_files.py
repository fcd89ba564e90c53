"""The files and folders that ``rstar2 demo`` makes in its folder and that the examples of the help name."""

DEMO_MAKES = ("cold-start", "traces.jsonl", "grpo_roc", "grpo_roc/best", "eval-cold-start", "eval-grpo_roc")
