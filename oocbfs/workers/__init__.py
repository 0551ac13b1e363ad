"""Clusters that people have already: Dask and MPI, and what oocbfs does on their processes."""
