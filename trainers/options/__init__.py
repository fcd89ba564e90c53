"""Options of a training run: configuration, files, names, slots, and the parts built from them."""
