"""Breadth-first searches and components on the engine that fits."""
