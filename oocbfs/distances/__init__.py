"""Distances of a whole graph: eccentricities, their distribution, and who is central."""
