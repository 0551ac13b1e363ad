"""Loops of the converter and the generators."""
