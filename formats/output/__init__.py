"""Files that appear whole or not at all: edge lists, vectors, anything renamed into place."""
