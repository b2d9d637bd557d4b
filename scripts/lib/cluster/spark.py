"""Spark's standalone cluster on some hosts, and the Python environment that each application ships to them."""

import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import processes
from broker_jars import ROOT
from cluster.hosts import BASE, Host

PYTHON = "./environment/bin/python"
"""The interpreter of driver and executors, as the recipe in docs/deployment.md names it."""

_MASTER_PORT = 7077
_SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_READY_S = 60.0


def pack(folder: Path) -> None:
    """Install this project into a new environment, `folder`/environment, and pack that for `--archives`."""
    made = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", made], check=True)
    wanted = [str(ROOT), "py4j", "pandas"]  # pyspark comes with Spark
    subprocess.run([made / "bin" / "pip", "install", "-q", "--disable-pip-version-check", *wanted], check=True)
    with tarfile.open(folder / "environment.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(made, ".")


@dataclass(slots=True)
class Cluster:
    """A master on this host, a worker on each of the others."""

    folder: Path
    hosts: Sequence[Host]
    cores: int = 2  # of each worker
    _logs: list[Path] = field(default_factory=list)

    @property
    def home(self) -> Path:
        """Spark's folder: a bind mount of its own, because hosts do not have our `.venv`."""
        return self.folder / "lib" / "pyspark"

    @property
    def _temporary(self) -> Path:
        """The folder for what killed processes leave."""
        return self.folder / "temporary"

    @property
    def master(self) -> str:
        """The address in `--master`."""
        return f"spark://{BASE}:{_MASTER_PORT}"

    def start(self) -> None:
        """Start master and workers."""
        self.home.mkdir(parents=True)
        self._temporary.mkdir()
        subprocess.run(["mount", "--bind", os.environ["SPARK_HOME"], self.home], check=True)  # noqa: S607
        for name in ("PYSPARK_DRIVER_PYTHON", "SPARK_SUBMIT_OPTS"):
            os.environ.pop(name, None)
        os.environ.update(self.environment(BASE))
        log = self.folder / "master.log"
        words = ["org.apache.spark.deploy.master.Master", "--host", BASE, "--port", str(_MASTER_PORT)]
        process = processes.start([*self._java, *words, "--webui-port", "0"], log)
        processes.wait_until(lambda: "New state: ALIVE" in processes.tail(log), _READY_S, process, log)
        for host in self.hosts:
            self.start_worker(host)

    def start_worker(self, host: Host) -> None:
        """Start a host with a worker, and await its registration."""
        log = self.folder / f"worker-{host.name}-{len(self._logs)}.log"
        self._logs.append(log)
        host.start()
        words = ["org.apache.spark.deploy.worker.Worker", "--cores", str(self.cores), "--memory", "4g"]
        words += ["--host", host.address, "--work-dir", str(self.folder / "work" / host.name), "--webui-port", "0"]
        process = host.run([*self._java, *words, self.master], log, self.environment(host.address))
        registered = "Successfully registered with master"
        processes.wait_until(lambda: registered in processes.tail(log), _READY_S, process, log)

    @property
    def _java(self) -> list[str]:
        return [str(self.home / "bin" / "spark-class")]

    def environment(self, address: str) -> Mapping[str, str]:
        """The environment of a process of Spark on the host with this address."""
        return {
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": address,
            "PYTHONPATH": str(self.home.parent),
            "PYSPARK_PYTHON": PYTHON,
            "JDK_JAVA_OPTIONS": f"{_SMALL} -Djava.io.tmpdir={self._temporary}",
            "SPARK_LOCAL_DIRS": str(self._temporary),
            "TMPDIR": str(self._temporary),
            "SPARK_DAEMON_MEMORY": "256m",
        }

    def words(self, cores: int = 1) -> list[str]:
        """The arguments of spark-submit: an application with so many cores on each host."""
        words = ["--master", self.master, "--archives", f"{self.folder / 'environment.tar.gz'}#environment"]
        settings = {
            "spark.cores.max": str(cores * len(self.hosts)),
            "spark.executor.cores": str(cores),
            "spark.executor.memory": "512m",
            "spark.executorEnv.PYTHONPATH": str(self.home.parent),
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.ui.enabled": "false",
        }
        return [*words, *(w for name, value in settings.items() for w in ("--conf", f"{name}={value}"))]
