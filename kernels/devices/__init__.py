"""Breadth-first search of a graph cut for several devices: what these tell each other."""
