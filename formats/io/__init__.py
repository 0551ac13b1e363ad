"""Streams, decompressors, direct reads and threads that keep an order."""
