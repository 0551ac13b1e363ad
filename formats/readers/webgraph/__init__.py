"""WebGraph's formats: compressed (BV) and as text (ASCII graph)."""
