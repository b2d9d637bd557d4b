"""A folder for all temporary files of child processes, also of those that are killed."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SHORT = 50  # the folder's name takes 14 characters, the name of a socket of Spark 43


@contextmanager
def of_children(parent: Path | None = None) -> Iterator[Path]:
    """Let Python, Java and Spark in children write below one folder, which goes at the end.

    It lies in `parent` if that has a short path: the path of a Unix socket has at most 107 characters.
    """
    inside = parent if len(str(parent)) <= _SHORT else None
    with tempfile.TemporaryDirectory(prefix="coop-", dir=inside, ignore_cleanup_errors=True) as folder:
        java = f"{os.environ.get('JDK_JAVA_OPTIONS', '')} -Djava.io.tmpdir={folder}".strip()
        ours = {"TMPDIR": folder, "SPARK_LOCAL_DIRS": folder, "JDK_JAVA_OPTIONS": java}
        before = {name: os.environ.get(name) for name in ours}
        os.environ.update(ours)
        try:
            yield Path(folder)
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                os.environ.update({} if value is None else {name: value})
