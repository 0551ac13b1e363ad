"""Runs of the command line with options, signals and graphs drawn at random, for as long as asked.

``scripts/soak --minutes 30`` runs them. Everything is drawn from the seed and the number of a run.
"""
