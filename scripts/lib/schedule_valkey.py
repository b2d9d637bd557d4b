"""A Valkey of its own for schedules of the simulation: nothing else slows it down."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import processes
import servers
from quiet import quiet
from simulation.world import Valkey

TRACED = ("coordinator", "spark_coop_source")
"""The loggers whose lines go to the traces of the schedules."""


@contextmanager
def in_memory(folder: Path) -> Iterator[Valkey]:
    """The connections to it. No schedule restarts it, so files would only take time."""
    server = servers.valkey(folder, more=("--appendonly", "no"))
    valkey = Valkey(server.local_address or server.address)
    try:
        yield valkey
    finally:
        valkey.close()
        server.stop()


@contextmanager
def of_command() -> Iterator[Valkey]:
    """The same for a command, which then prints nothing of the coordinator."""
    with (
        quiet(*TRACED),
        tempfile.TemporaryDirectory(prefix="coop-kafka-simulation-") as folder,
        processes.ending_politely(),
        in_memory(Path(folder)) as valkey,
    ):
        yield valkey
