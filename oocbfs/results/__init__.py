"""What a search gives: levels, parents, components, in the ids of the input."""
