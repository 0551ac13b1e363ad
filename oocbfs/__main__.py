"""``python -m oocbfs``."""

from oocbfs.cli import program

program()
