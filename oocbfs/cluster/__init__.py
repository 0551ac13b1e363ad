"""Graphs in parts: cut them, search the parts, and exchange what they find."""
