"""Beyond one process: clusters that already run Dask or MPI."""
