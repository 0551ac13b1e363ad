"""What can be asked of a graph in parts, from beginning to end."""
