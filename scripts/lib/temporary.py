"""A folder for all temporary files of child processes, also of those that are killed."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def of_children() -> Iterator[Path]:
    """Let Python, Java and Spark in children write below one folder, which goes at the end.

    Its path is short: the path of a Unix socket has at most 107 characters.
    """
    with tempfile.TemporaryDirectory(prefix="coop-", ignore_cleanup_errors=True) as folder:
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
