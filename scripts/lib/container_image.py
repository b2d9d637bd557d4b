"""The command `scripts/image`: builds the image of `conf/image`, and runs queries in containers of it."""

import argparse
import tempfile
import time
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import job_output
import processes
import servers
import temporary
from broker_jars import ROOT
from containers import image
from containers.application import Application
from containers.image import Container
from drivers.fleet import Fleet
from flights import flights
from job import FLIGHTS_JOB, Job
from topics import Kafka

_CORES = 2
_SESSION_S = 45
_GRACE_S = 30
_BY_SIGTERM = 143
_PATIENCE_S = 240.0
_ARROW = ("java.base/java.nio=ALL-UNNAMED", "java.base/sun.nio.ch=ALL-UNNAMED")
"""Modules that Java must open for Arrow. Spark's driver names them, and others, to executors."""


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/image",
        description="Builds the container image, and runs it as a user that it does not know: a driver and an executor"
        " as in Kubernetes, and two applications of one group, of which one is drained, ended by SIGTERM, started"
        " again and killed. At the end every record must be in a sink, each key in order. Needs Linux and podman.",
    )
    parser.add_argument("--base", metavar="IMAGE", help="instead of Debian: an image, or a file with its file system")
    return parser.parse_args()


def main() -> int:
    """Build and run; 0 if all went well."""
    image.build(arguments().base)
    with processes.ending_politely(), ExitStack() as stack:
        stack.enter_context(temporary.of_children())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="coop-kafka-image-")))
        folder.chmod(0o755)
        kafka, redis = stack.enter_context(servers.kafka_and_valkey(folder))
        scene = _Scene(folder, Kafka(kafka.address), redis.address, stack)
        good = scene.read_in_pods()
        return 0 if scene.replace() and good else 1


class _Scene:
    def __init__(self, folder: Path, kafka: Kafka, redis_url: str, stack: ExitStack) -> None:
        self._folder, self._kafka, self._redis, self._stack = folder, kafka, redis_url, stack
        self._began, self._name = time.monotonic(), f"image-{uuid.uuid4().hex[:8]}"

    def _log(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:5.0f} s  {text}", flush=True)

    # -- the two commands that Spark gives to pods -----------------------------------------------------

    def read_in_pods(self) -> bool:
        """Read a backlog with a driver and an executor in containers; whether no record is missing or twice.

        A master of Spark's standalone cluster, which has no workers, stands for Kubernetes.
        """
        sent, topic = flights(), self._kafka.create_topic("flights")
        self._kafka.produce(topic, sent, compression="lz4")
        folder = self._folder / "pods"
        folder.mkdir()
        folder.chmod(0o777)
        master_port, port = servers.free_ports(2)
        master = self._container("master", {})
        words = ["--host", servers.HOST, "--port", str(master_port), "--webui-port", "0"]
        running = master.start(["spark-class", "org.apache.spark.deploy.master.Master", *words])
        processes.wait_until(lambda: "New state: ALIVE" in processes.tail(master.log), _PATIENCE_S, running, master.log)
        job = Job(self._kafka.bootstrap, topic, "flights", self._redis, folder, len(sent))
        driver = self._container("driver", {"COOP_REDIS": self._redis, "SPARK_DRIVER_BIND_ADDRESS": servers.HOST})
        settings = {"spark.driver.host": servers.HOST, "spark.driver.port": str(port), "spark.ui.enabled": "false"}
        words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        words += ["--master", f"spark://{servers.HOST}:{master_port}", str(FLIGHTS_JOB), *job.words]
        reading = driver.start(["driver", *words])
        processes.wait_until(lambda: "Registered app" in processes.tail(master.log), _PATIENCE_S, reading, driver.log)
        self._container("executor", _executor(port)).start(["executor"])
        if code := reading.wait(_PATIENCE_S):
            raise RuntimeError(f"the driver ended with code {code}:\n{processes.tail(driver.log)}")
        offsets = job_output.offsets(job.output)
        whole = offsets == list(range(len(sent)))
        self._log(f"a driver and an executor: {len(offsets):,} of {len(sent):,} records, each once: {whole}")
        return whole

    def _container(self, role: str, environment: dict[str, str]) -> Container:
        folders = [self._folder / "pods", ROOT / "scripts"]
        environment = environment | {"SPARK_LOCAL_IP": servers.HOST}
        made = Container(f"{self._name}-{role}", self._folder / f"{role}.log", folders, environment)
        self._stack.callback(made.kill)
        return made

    # -- an application is replaced --------------------------------------------------------------------

    def replace(self) -> bool:
        """Two applications share a flow while one is replaced and killed; whether nothing is lost or out of order."""
        fleet = Fleet(self._kafka, self._redis, self._name, self._folder / self._name, pace="1 second")
        fleet.options, fleet.kind = {"sessionTimeout": str(1000 * _SESSION_S)}, Application
        self._stack.callback(fleet.end)
        with fleet.producing():
            a, b = (cast(Application, fleet.join(name)) for name in ("a", "b"))
            self._share(fleet, a, b)
            ended = self._drain_and_terminate(fleet, a)
            a.start()
            self._share(fleet, a, b)
            held = fleet.held(a)
            a.kill()
            self._log(f"a is killed, and b delivers its keys after {fleet.delivered(held):.1f} s")
            a.start()
            self._share(fleet, a, b)
        fleet.until(lambda: fleet.everything_arrived, "every record is in a sink")
        fleet.end()
        self._log(str(fleet.outcome()))
        return fleet.outcome().good and ended

    def _drain_and_terminate(self, fleet: Fleet, a: Application) -> bool:
        """Whether others got the ranges before the lease ended, and SIGTERM reached the driver."""
        held = fleet.held(a)
        words = ["drain", fleet.group, "--redis", self._redis, "--host", a.container.name, "--execute"]
        self._log(a.container.inside(["coop-kafka", *words]).strip())
        seconds = fleet.delivered(held)
        self._log(f"b delivers the keys of a after {seconds:.1f} s")
        began = time.monotonic()
        code = a.terminate(_GRACE_S)
        self._log(f"a gets SIGTERM, and its container ends after {time.monotonic() - began:.1f} s with code {code}")
        return seconds < _SESSION_S and code == _BY_SIGTERM

    def _share(self, fleet: Fleet, *applications: Application) -> None:
        fleet.until(lambda: fleet.shared(*applications), "both share the partition")
        self._log("both applications share the partition")


def _executor(port: int) -> dict[str, str]:
    """The environment that Kubernetes gives to the pod of an executor."""
    options = {f"SPARK_JAVA_OPT_{n}": f"--add-opens={each}" for n, each in enumerate(_ARROW)}
    return options | {
        "SPARK_DRIVER_URL": f"spark://CoarseGrainedScheduler@{servers.HOST}:{port}",
        "SPARK_EXECUTOR_CORES": str(_CORES),
        "SPARK_EXECUTOR_MEMORY": "512m",
        "SPARK_EXECUTOR_ID": "1",
        "SPARK_EXECUTOR_POD_IP": servers.HOST,
        "SPARK_EXECUTOR_POD_NAME": "executor-1",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_APPLICATION_ID": "flights",
        "SPARK_CONF_DIR": "/opt/spark/conf",
        "SPARK_CLASSPATH": "/opt/spark/extra/*",
    }


if __name__ == "__main__":
    raise SystemExit(main())
