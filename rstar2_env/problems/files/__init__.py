"""Problems in files and on the hub: formats, columns, streams, and writing them."""
