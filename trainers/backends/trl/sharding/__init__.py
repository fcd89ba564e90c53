"""Weights and optimizer state divided over processes: FSDP2, ZeRO, checkpoint shards."""
