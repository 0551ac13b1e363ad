"""print what makes a shell complete verbs, options and files of oocbfs

bash: oocbfs completion bash > ~/.local/share/bash-completion/completions/oocbfs
zsh:  oocbfs completion zsh > ~/.zfunc/_oocbfs, where ~/.zfunc is in $fpath before compinit
fish: oocbfs completion fish > ~/.config/fish/completions/oocbfs.fish
"""

from __future__ import annotations

import argparse
from typing import get_args

from oocbfs.settings import Shell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=get_args(Shell), help="the shell that is to complete")


def run(options: argparse.Namespace) -> None:
    """Print the shell's code; it asks oocbfs itself how a line may go on."""
    from oocbfs.errors import OocbfsError

    try:
        from argcomplete.shell_integration import shellcode
    except ImportError as error:
        raise OocbfsError(
            "completion needs argcomplete: pip install 'oocbfs[completion]'"
        ) from error
    print(shellcode(["oocbfs"], shell=options.shell))
