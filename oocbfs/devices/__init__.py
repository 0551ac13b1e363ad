"""Searches on several GPUs of one host: a part of the vertices on each, and what they exchange."""
