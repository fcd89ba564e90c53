"""The warden: the program between the caller and every program of a model."""
