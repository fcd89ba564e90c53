"""Training on Hugging Face TRL; the only place that imports it."""
