"""Evaluation: play and record episodes, summarize and compare them, and validate or describe environments."""
