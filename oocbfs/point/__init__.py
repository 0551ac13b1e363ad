"""Questions about a few vertices: distances and paths between two, one pair or many."""
