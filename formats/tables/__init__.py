"""Edges in tables: two of the columns of a text, of a Parquet or Arrow file, of a data frame."""
