"""Runs `flights_job.py` as a user does, by spark-submit, and kills it as a lost machine does.

Knows the job's arguments and its output folders; knows nothing of the rows.
"""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import job_output
import processes
from broker_jars import ROOT

_POLL_S = 0.03
SLOTS = 4
FLIGHTS_JOB = ROOT / "scripts" / "flights_job.py"


@dataclass(frozen=True, slots=True)
class SparkSubmit:
    """A script as spark-submit runs it, on this machine.

    It works in its own folder: Python workers search there for modules first, and must import the installed modules.
    """

    script: Path
    arguments: Sequence[str]
    folder: Path
    log: Path
    slots: int
    cluster: Sequence[str] = ()  # arguments that name a cluster, else this machine with its slots

    def start(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start a driver."""
        submit = Path(os.environ["SPARK_HOME"], "bin", "spark-submit")
        java = f"-Dlog4j2.configurationFile={ROOT / 'conf' / 'log4j2.properties'} -Dcoop.log={self.log}"
        words = [*(self.cluster or ("--master", f"local[{self.slots}]")), "--driver-java-options", java]
        words += ["--conf", "spark.ui.enabled=false"]
        words += ["--conf", "spark.python.unix.domain.socket.enabled=true"]
        command: list[str | Path] = [submit, *words, self.script, *self.arguments]
        return processes.start(command, self.log, folder=self.folder, environment=environment)


@dataclass(frozen=True, slots=True)
class Job:
    """One query. A second start in the same folder continues where the first stopped."""

    bootstrap: str
    topic: str
    group: str
    redis_url: str  # it may have a password: the environment hides it from other users
    folder: Path
    per_batch: int

    @property
    def output(self) -> Path:
        """The folder of the batches."""
        return self.folder / "output"

    @property
    def log(self) -> Path:
        """The log of the driver."""
        return self.folder / "driver.log"

    def start(self) -> subprocess.Popen[bytes]:
        """Start a driver; it ends by itself at the end of the topic."""
        return SparkSubmit(FLIGHTS_JOB, self.words, self.folder, self.log, SLOTS).start({"COOP_REDIS": self.redis_url})

    @property
    def words(self) -> list[str]:
        """The arguments of the job."""
        words = ["--bootstrap", self.bootstrap, "--topic", self.topic, "--group", self.group]
        words += ["--output", str(self.output), "--checkpoint", str(self.folder / "checkpoint")]
        words += ["--slots", str(SLOTS), "--per-batch", str(self.per_batch), "--available-now"]
        return words

    def finish(self, process: subprocess.Popen[bytes], meanwhile: Callable[[], None]) -> None:
        """Wait for a driver's end; raises `RuntimeError` with the end of its log if it failed."""
        while process.poll() is None:
            meanwhile()
            time.sleep(_POLL_S)
        meanwhile()
        if process.returncode:
            raise RuntimeError(f"the job ended with code {process.returncode}:\n{processes.tail(self.log)}")

    def kill_in_a_batch(self, process: subprocess.Popen[bytes], meanwhile: Callable[[], None]) -> int:
        """Kill a driver with all its children while they write a batch after the first; returns the batch id.

        Raises `RuntimeError` if the driver ends before, or if the batch was complete at the kill.
        """
        while process.poll() is None:
            meanwhile()
            batch = job_output.batch_being_written(self.output)
            if batch and job_output.batch_id(batch) > 0:
                processes.kill(process)
                if batch not in job_output.finished_batches(self.output):
                    return job_output.batch_id(batch)
                raise RuntimeError(f"the kill came too late, {batch.name} was just complete: try again")
            time.sleep(_POLL_S)
        self.finish(process, meanwhile)
        raise RuntimeError("the job was done before it could be killed: run it with more rows")
