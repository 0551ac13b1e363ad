"""Steps of a search on one part of a graph: its rows, and bitmaps of all vertices."""
