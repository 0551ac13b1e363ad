"""Graphs made of nothing: Kronecker, uniform, grids, power laws."""
