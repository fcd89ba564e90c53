"""The ``docker`` provider: the warden in containers. Its image is built from the Dockerfile here."""
