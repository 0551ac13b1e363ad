"""What pyproject.toml cannot say: an sdist holds the links that the checkout has."""

import os
from pathlib import Path

from setuptools import setup
from setuptools.command.sdist import sdist

LINKED = ("formats", "kernels", "tools")


class LinkedSdist(sdist):
    """An sdist in which ``oocbfs/kernels`` and the others lead to the folders beside it."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Copy the files, then link."""
        super().make_release_tree(base_dir, files)
        for name in LINKED:
            os.symlink(Path("..", name), Path(base_dir, "oocbfs", name))


setup(cmdclass={"sdist": LinkedSdist})
