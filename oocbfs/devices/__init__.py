"""Searches on several GPUs of one host: a shard of the graph on each, and what they exchange."""
