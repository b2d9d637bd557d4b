"""Bytecode for the archives from which Spark's Pythons import pyspark and py4j.

They come before what is installed, and hold sources only: each of the ten processes of a driver would compile them
anew, a second of CPU time every time. Standard library only.
"""

import importlib.util
import marshal
import warnings
import zipfile
from pathlib import Path

_UNCHECKED = (1).to_bytes(4, "little")  # a hash of the source that nobody looks at (PEP 552)


def add(archive: Path) -> None:
    """Put a `.pyc` beside each module of an archive; another version of Python passes over it."""
    made = archive.with_suffix(".made")
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(made, "w") as new, warnings.catch_warnings(action="ignore"):
        for name in old.namelist():
            if not name.endswith(".pyc"):
                new.writestr(name, old.read(name))
            if name.endswith(".py") and "/tests/" not in name:
                new.writestr(f"{name}c", _compiled(old.read(name), f"{archive}/{name}"))
    made.replace(archive)


def _compiled(source: bytes, name: str) -> bytes:
    code = marshal.dumps(compile(source, name, "exec", dont_inherit=True))
    return importlib.util.MAGIC_NUMBER + _UNCHECKED + importlib.util.source_hash(source) + code
