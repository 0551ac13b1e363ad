"""Breadth-first search whose vertices are dealt to several devices: what these tell each other."""
