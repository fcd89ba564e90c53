"""Shard weights and optimizer state over processes: FSDP2, ZeRO, and checkpoints with shards."""
