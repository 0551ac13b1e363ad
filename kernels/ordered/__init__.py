"""Searches that visit neighbours in a given order, one after the other."""
