"""Kernels that do nothing but let themselves be timed: what a device gives at most."""
