"""Files: lines appended safely, JSON values, TOML text, configuration files, folders."""
