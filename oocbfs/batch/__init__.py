"""Many sources in one job that can be resumed."""
