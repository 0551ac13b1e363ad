"""One page about one graph: what the file is, and what was found in it."""
