"""What the levels of one search say about all other vertices."""
