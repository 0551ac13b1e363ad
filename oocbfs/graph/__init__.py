"""A graph that is open: its vertices, rows and sizes, and the check of its file."""
