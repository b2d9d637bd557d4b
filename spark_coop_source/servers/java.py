"""This machine's Java, and programs in Java, fetched once by the Ivy that ships inside pyspark.

Standard library only, because `scripts/lib/environment.py` uses it before anything is installed.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from coordinator.errors import EnvironmentMismatchError

JAVA_AT_LEAST = 17
_TRIES = 2


def java() -> str:
    """The command `java` that Spark would run."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def java_version() -> str:
    """The words of `java` on itself; raises `EnvironmentMismatchError` if it is missing or too old."""
    try:
        text = subprocess.run([java(), "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603
    except OSError:
        text = ""
    version = re.search(r'version "(\d+)', text)
    if not version or int(version[1]) < JAVA_AT_LEAST:
        found = f"{java()} is version {version[1]}" if version else f"{java()} does not run"
        raise EnvironmentMismatchError(
            f"coop-kafka needs Java {JAVA_AT_LEAST} or 21: {found}",
            "install one with your system's packages (Debian: openjdk-17-jre-headless), or set JAVA_HOME to an "
            "installed one",
        )
    return text[version.start() :]


@dataclass(frozen=True, slots=True)
class JarSet:
    """The jars that Ivy's file `wanted` requests, in `folder`: either complete or missing."""

    folder: Path
    wanted: Path
    what: str  # for people

    @property
    def jars(self) -> list[Path]:
        """Every jar, by name."""
        return sorted(self.folder.glob("*.jar"))

    def present(self) -> bool:
        """Whether the currently requested jars exist."""
        stamp = self.folder / self.wanted.name
        return stamp.is_file() and stamp.read_bytes() == self.wanted.read_bytes()

    def fetch(self, spark_home: Path) -> None:
        """Fetch them, unless another process does; raises `RuntimeError` with Ivy's last output at the last failure."""
        cache = self.folder.parent
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "ivy.lock").open("w") as lock, tempfile.TemporaryDirectory(dir=cache) as folder:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.present():
                return
            partial = Path(folder) / "jars"
            self._retrieve(spark_home, partial)
            shutil.copy(self.wanted, partial)
            shutil.rmtree(self.folder, ignore_errors=True)
            partial.rename(self.folder)

    def _retrieve(self, spark_home: Path, folder: Path) -> None:
        command = [java(), "-cp", str(spark_home / "jars" / "*"), "org.apache.ivy.Main"]
        command += ["-ivy", str(self.wanted), "-cache", str(self.folder.parent / "ivy"), "-confs", "default"]
        command += ["-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]"]
        for _ in range(_TRIES):
            ivy = subprocess.run(  # noqa: S603
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            if ivy.returncode == 0:
                return
        raise RuntimeError(
            f"Ivy could not fetch {self.what}, tried {_TRIES} times:\n{ivy.stdout[-2000:]}{ivy.stderr[-500:]}"
        )


def broker_jars(cache: Path) -> JarSet:
    """The jars of a Kafka broker, in a folder of the cache."""
    return JarSet(cache / "kafka-4.2.0", Path(__file__).with_name("broker-ivy.xml"), "a Kafka broker")
