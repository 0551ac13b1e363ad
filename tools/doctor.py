"""show what this machine can run, what is missing and how to get it"""

from __future__ import annotations

import argparse

from oocbfs.tools import options as shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    shared.add(parser, "--json")


def run(options: argparse.Namespace) -> None:
    """Examine and print."""
    from oocbfs.doctor import examine

    findings = examine()
    rows = (
        (
            finding.part,
            finding.found or f"missing; would enable {finding.enables}: {finding.get}",
        )
        for finding in findings
    )
    shared.print_report(options, {"findings": [vars(finding) for finding in findings]}, rows)
