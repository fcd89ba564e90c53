"""Problems in files and on the Hugging Face Hub: formats, columns, streaming, and writing."""
