"""Export: the viewer's page and its data as one HTML file that works without a server or network."""
