"""Shards on each engine: what answers for a part of a graph."""
