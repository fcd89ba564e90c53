"""The ``docker`` provider: wardens in containers. Their image is built from the Dockerfile in this folder."""
