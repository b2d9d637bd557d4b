"""A Kafka broker's jars, fetched once by the Ivy that ships inside pyspark.

Standard library only: it also runs before anything is installed.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
JARS = CACHE / "kafka-4.2.0"
_WANTED = ROOT / "conf" / "broker-ivy.xml"
_TRIES = 2


def present() -> bool:
    """Whether the jars that `conf/broker-ivy.xml` asks for are there, all of them."""
    stamp = JARS / _WANTED.name
    return stamp.is_file() and stamp.read_bytes() == _WANTED.read_bytes()


def fetch(java: str, spark_home: Path) -> None:
    """Fetch the jars into `JARS`, which appears complete or not at all.

    Raises `RuntimeError` with Ivy's last words when every try has failed.
    """
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        partial = Path(folder) / JARS.name
        _retrieve(java, spark_home, partial)
        shutil.copy(_WANTED, partial)
        shutil.rmtree(JARS, ignore_errors=True)
        partial.rename(JARS)


def _retrieve(java: str, spark_home: Path, folder: Path) -> None:
    command = [java, "-cp", str(spark_home / "jars" / "*"), "org.apache.ivy.Main"]
    command += ["-ivy", str(_WANTED), "-cache", str(CACHE / "ivy"), "-confs", "default"]
    command += ["-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]"]
    for _ in range(_TRIES):
        ivy = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if ivy.returncode == 0:
            return
    raise RuntimeError(
        f"Ivy could not fetch the Kafka broker, tried {_TRIES} times:\n{ivy.stdout[-2000:]}{ivy.stderr[-500:]}"
    )
