"""From edges to a graph file, in bounded memory."""
