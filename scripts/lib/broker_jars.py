"""Java programs for tests, the demo and the benchmarks, fetched once by the Ivy that ships inside pyspark.

Standard library only, because it also runs before anything is installed.
"""

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
_TRIES = 2


@dataclass(frozen=True, slots=True)
class JarSet:
    """The jars that `conf/<wanted>` requests, in `.cache/<name>`: either complete or missing."""

    name: str
    wanted: str
    what: str  # for people

    @property
    def folder(self) -> Path:
        """The folder of the jars."""
        return CACHE / self.name

    @property
    def jars(self) -> list[Path]:
        """Every jar, by name."""
        return sorted(self.folder.glob("*.jar"))

    def present(self) -> bool:
        """Whether the currently requested jars exist."""
        stamp = self.folder / self.wanted
        return stamp.is_file() and stamp.read_bytes() == self._asked.read_bytes()

    def fetch(self, java: str, spark_home: Path) -> None:
        """Fetch them; raises `RuntimeError` with Ivy's last output after the last failed try."""
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            partial = Path(folder) / self.name
            self._retrieve(java, spark_home, partial)
            shutil.copy(self._asked, partial)
            shutil.rmtree(self.folder, ignore_errors=True)
            partial.rename(self.folder)

    @property
    def _asked(self) -> Path:
        return ROOT / "conf" / self.wanted

    def _retrieve(self, java: str, spark_home: Path, folder: Path) -> None:
        command = [java, "-cp", str(spark_home / "jars" / "*"), "org.apache.ivy.Main"]
        command += ["-ivy", str(self._asked), "-cache", str(CACHE / "ivy"), "-confs", "default"]
        command += ["-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]"]
        for _ in range(_TRIES):
            ivy = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if ivy.returncode == 0:
                return
        raise RuntimeError(
            f"Ivy could not fetch {self.what}, tried {_TRIES} times:\n{ivy.stdout[-2000:]}{ivy.stderr[-500:]}"
        )


BROKER = JarSet("kafka-4.2.0", "broker-ivy.xml", "a Kafka broker")
CONNECTOR = JarSet("spark-kafka-4.2.0", "connector-ivy.xml", "Spark's Kafka source, to compare with")
PARALLEL_CONSUMER = JarSet("parallel-consumer-0.5.3.3", "parallel-consumer-ivy.xml", "parallel-consumer")
MIRROR_MAKER = JarSet("mirror-maker-4.2.0", "mirror-maker-ivy.xml", "MirrorMaker 2")
