"""A scratch copy of the checkout in which faults are switched on and off; the checkout itself never changes."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mutants.changes import Change

_FOLDERS = ("coordinator", "spark_coop_source", "scripts", "specs", "tests", "conf", "docs")
_FILES = ("README.md", "setup.cfg", "pyproject.toml")
_CACHE = ".cache"  # the jars of Kafka, for tests that start a broker of their own


def copied(root: Path, tree: Path) -> Path:
    """A copy of the parts of the current checkout that tests need, without git."""
    for name in _FOLDERS:
        shutil.copytree(root / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in _FILES:
        shutil.copy2(root / name, tree / name)
    if (root / _CACHE).is_dir():
        (tree / _CACHE).symlink_to(root / _CACHE)
    return tree


@contextmanager
def broken(tree: Path, change: Change) -> Iterator[None]:
    """The tree with this change, for the body of `with`."""
    file = tree / change.path
    before = file.read_text()
    try:
        file.write_text(change.of(before))
        yield
    finally:
        file.write_text(before)
