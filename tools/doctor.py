"""show what this machine can run, what is missing and how to get it"""

from __future__ import annotations

import argparse

from oocbfs.errors import OocbfsError, QueryError
from oocbfs.tools.shared import options as shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    shared.add(parser, "--json")
    ahead = "compile the kernels of all commands now, instead of each when it first runs"
    shared.add_flag(parser, "--compile", ahead)
    shared.add_flag(
        parser,
        "--gpu",
        "check all GPU kernels against the CPU, measure the GPU, and print a report to send; "
        "the exit code is 1 if anything differs",
    )
    shared.add(
        parser,
        "--engine",
        choices=("cuda", "emulator"),
        default=None,
        help="what --gpu looks at: the GPU, or the emulator that runs its kernels on the CPU "
        "(default: cuda)",
    )


def run(options: argparse.Namespace) -> None:
    """Compile, if that is wanted; examine and print."""
    if options.gpu:
        _meet_gpu(options)
        return
    if options.engine is not None:
        raise QueryError("--engine says what --gpu looks at: add --gpu, or leave it out")
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


def _meet_gpu(options: argparse.Namespace) -> None:
    """Check and measure a GPU, and print what was found."""
    from oocbfs.first_contact import report
    from oocbfs.first_contact.contact import make_contact
    from oocbfs.first_contact.target import Target
    from oocbfs.progress import Phases

    if options.compile:
        _compile()
    contact = make_contact(Target(options.engine or "cuda"), Phases())
    if options.json:
        shared.print_json(report.values(contact))
    else:
        for title, rows in report.sections(contact):
            print(title)
            for line in shared.in_columns((f"  {name}", said) for name, said in rows):
                print(line)
            print()
        for problem in report.problems(contact):
            print(f"PROBLEM  {problem}")
        print(f"Verdict: {report.verdict(contact)}\n")
        print("To send to the authors, from here to the end:\n")
        for line in report.block(contact):
            print(line)
    if not contact.passed:
        raise OocbfsError(report.verdict(contact))
