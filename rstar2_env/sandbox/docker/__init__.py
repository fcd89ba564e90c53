"""The sandbox provider ``docker``: runs programs in containers; the Dockerfile in this folder builds their image."""
