"""Bytecode for the archives from which Spark's Pythons import pyspark and py4j.

Python imports these archives before installed packages, and they contain sources only. Each of a driver's ten processes
would compile them again, a second of CPU each time. Standard library only.
"""

import importlib.util
import marshal
import warnings
import zipfile
from pathlib import Path

_UNCHECKED = (1).to_bytes(4, "little")  # Python does not check this hash of the source (PEP 552)


def add(archive: Path) -> None:
    """Put a `.pyc` beside each module of an archive; another version of Python ignores it."""
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
