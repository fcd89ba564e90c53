"""Reading and writing files: appended lines, JSON values, TOML text, configuration files, output folders."""
