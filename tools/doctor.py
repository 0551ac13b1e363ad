"""show what this machine can run, what is missing and how to get it"""

from __future__ import annotations

import argparse

from oocbfs.tools.shared import options as shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    shared.add(parser, "--json")
    parser.add_argument(
        "--compile",
        action="store_true",
        help="compile the kernels of all commands now, instead of each when it first runs",
    )


def run(options: argparse.Namespace) -> None:
    """Compile, if that is wanted; examine and print."""
    from oocbfs.doctor import examine

    if options.compile:
        _compile()
    findings = examine()
    rows = (
        (
            finding.part,
            finding.found or f"missing; would enable {finding.enables}: {finding.get}",
        )
        for finding in findings
    )
    shared.print_report(options, {"findings": [vars(finding) for finding in findings]}, rows)


def _compile() -> None:
    """Compile all kernels, with a bar."""
    from oocbfs.doctor import NUM_COMPILED, compile_ahead
    from oocbfs.progress import Phases

    with Phases()("compile", NUM_COMPILED, "part") as bar:
        compile_ahead(bar.update)
