"""Training with Hugging Face TRL; no other package imports TRL."""
