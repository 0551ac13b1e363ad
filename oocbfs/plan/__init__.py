"""Decide what lives where and predict what it costs; no engine is imported here."""
