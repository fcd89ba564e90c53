"""The warden: the program between the caller and the model's programs."""
