"""Training with Hugging Face TRL; no other package of this project imports TRL."""
