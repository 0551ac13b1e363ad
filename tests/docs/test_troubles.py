"""The page about what goes wrong quotes messages that the program has."""

import ast
import re

from tests.support.packages import ROOT, modules

PAGE = ROOT / "tools" / "troubles.md"


def texts() -> str:
    """Every text of the program; where a name or a number comes in, a new line."""
    trees = (ast.parse(path.read_text()) for path in modules().values())
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return "\n".join(node.value for node in nodes if isinstance(node.value, str))


def test_messages_are_those_of_the_program() -> None:
    known = texts()
    quoted = 0
    for table in PAGE.read_text().split("| it says |")[1:]:
        for row in re.findall(r"^\| (`.*?`) \| ", table.split("\n\n")[0], re.MULTILINE):
            for message in re.findall(r"`([^`]+)`", row):
                for piece in filter(None, map(str.strip, message.split("…"))):
                    assert piece in known, message
                quoted += 1
    assert quoted > 35
