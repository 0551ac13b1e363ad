"""Sharded graphs: cut them, search the shards, and exchange what they find."""
