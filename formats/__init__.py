"""Bytes: the container, its codec, and one reader per input format."""
