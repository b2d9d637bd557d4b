"""A scratch copy of the checkout in which faults are switched on and off; the checkout itself never changes."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mutants.fault import Edit, Fault

_FOLDERS = ("coordinator", "spark_coop_source", "scripts", "tests", "conf", "docs")
_FILES = ("README.md", "setup.cfg", "pyproject.toml")
_CACHE = ".cache"  # the jars of Kafka, for tests that start a broker of their own


class OutOfDateError(Exception):
    """The code does not contain a fault's text any more: the fault needs a new text."""


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
def broken(tree: Path, fault: Fault) -> Iterator[None]:
    """The tree with this fault, for the body of `with`."""
    before = {edit.path: (tree / edit.path).read_text() for edit in fault.edits}
    try:
        for edit in fault.edits:
            text = edited((tree / edit.path).read_text(), fault, edit)
            (tree / edit.path).write_text(text)
        yield
    finally:
        for path, text in before.items():
            (tree / path).write_text(text)


def edited(text: str, fault: Fault, edit: Edit) -> str:
    """The text with the edit; `OutOfDateError` unless it contains the old text exactly once."""
    if (count := text.count(edit.old)) != 1:
        raise OutOfDateError(f"{fault.name}: {edit.path} holds {count} times, not once: {edit.old!r}")
    return text.replace(edit.old, edit.new)
