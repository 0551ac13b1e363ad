"""The searches of the papers, side by side with ours: a table of methods and their options."""

from oocbfs.methods.choice import MethodChoice, parse_method
from oocbfs.methods.table import AUTO, METHODS, Method, Option

__all__ = ["AUTO", "METHODS", "Method", "MethodChoice", "Option", "parse_method"]
