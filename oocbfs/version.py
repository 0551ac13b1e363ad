"""The version of the program, which packages, files and pages say."""

__version__ = "0.1.0"
