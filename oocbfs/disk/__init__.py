"""Engines whose tails stay on disk."""
