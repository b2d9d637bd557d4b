"""An archive of the classes that a Spark driver loads, from which the JVM of the next driver starts.

A JVM that maps the archive starts with half of the work. It ignores an archive that another Java or Spark has made.
Standard library only.
"""

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

_JOB = Path(__file__).with_name("class_archive_job.py")


def make(archive: Path, environment: Mapping[str, str]) -> bool:
    """Run a small query that leaves the archive at its end; whether it did."""
    archive.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="coop-kafka-classes-") as folder:
        java = f"-XX:ArchiveClassesAtExit={archive} -Djava.io.tmpdir={folder}"
        words = ["--master", "local[2]", "--driver-java-options", java, "--conf", "spark.ui.enabled=false"]
        command = [f"{environment['SPARK_HOME']}/bin/spark-submit", *words, str(_JOB), folder]
        alone = {**environment, "SPARK_SUBMIT_OPTS": ""}  # a JVM that maps an archive makes none
        subprocess.run(command, cwd=folder, env=alone, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return archive.is_file()


def use(archive: Path, options: str) -> str:
    """The options of a driver's JVM, with those that map the archive."""
    wanted = f"-XX:SharedArchiveFile={archive}"
    return options if wanted in options or not archive.is_file() else f"{wanted} {options}".strip()
