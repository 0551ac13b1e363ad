"""Connected components by Afforest: numba and CUDA."""
