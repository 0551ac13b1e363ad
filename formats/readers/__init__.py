"""One reader for each format of edges, and the detection that picks one."""
