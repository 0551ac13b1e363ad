"""Files that appear whole or not at all: edge lists and vectors, renamed when they are complete."""
