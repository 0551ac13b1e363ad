"""Loops over results: naming, checking, predicting, writing as text."""
