"""One application of a fleet, whose driver is a container."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from broker_jars import ROOT
from containers.image import Container
from drivers import points
from drivers.driver import Driver
from servers import HOST

_SCRIPTS = ROOT / "scripts"


@dataclass(slots=True)
class Application(Driver):
    """A driver in a container."""

    @property
    def container(self) -> Container:
        """Its container; the folder lies outside, and outlives it."""
        environment = {"PYTHONPATH": str(_SCRIPTS / "lib"), "SPARK_LOCAL_IP": HOST, points.FOLDER: str(self.folder)}
        return Container(f"{self.folder.parent.name}-{self.name}", self.log, [self.folder, _SCRIPTS], environment)

    def start(self) -> None:
        """Start a container on the folder's checkpoint."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o777)
        points.disarm(self.folder)
        self.had = len(self.lines)
        words: list[str | Path] = ["spark-submit", "--master", "local[2]", "--conf", "spark.ui.enabled=false", self.job]
        self.process = self.container.start([*words, self.folder, json.dumps(dict(self.options)), self.pace])

    def is_member(self, fields: Mapping[str, str], running: subprocess.Popen[bytes]) -> bool:
        """By the name of its host: process ids of a container mean nothing here."""
        return fields.get("host") == self.container.name

    def kill(self) -> None:
        """SIGKILL to all of its container."""
        self.container.kill()
        self._ended()

    def terminate(self, grace_s: int) -> int:
        """SIGTERM, as a pod that ends gets it; returns the exit code."""
        self.container.stop(grace_s)
        return self._ended()

    def _ended(self) -> int:
        if self.process is None:
            raise RuntimeError(f"driver {self.name} was never started")
        self.disturbed.append(len(self.lines))
        return self.process.wait()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        self.container.kill()
