"""Shards on each engine: what answers for a shard of a graph."""
