"""Loops over results: to ids, checking, predicting, writing as text."""
