"""Steps of a search on one shard of a graph: its rows, and bitmaps of all vertices."""
