"""The driver's part in the ends of tasks: it notes what they tell."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from coordinator.progress.ends import Ends
from coordinator.progress.failing import NO_FAILURES, Failures
from spark_coop_source.driver.task_server import TaskServer
from spark_coop_source.task.partition import SlicePartition, TaskEnding


class Told:
    """What it was asked, and which tasks have ended where."""

    def __init__(self) -> None:
        self.asked, self.ended = list[int](), list[tuple[str, int, Ends]]()
        self.failures = list[Failures]()

    def agreed_ends(self, digest: str, task: int) -> Ends | None:
        self.asked.append(task)
        return None

    def end_task(self, digest: str, task: int, ends: Ends, failures: Failures = NO_FAILURES) -> Ends:
        self.ended.append((digest, task, ends))
        self.failures.append(failures)
        return ends


@contextmanager
def told_by(task: SlicePartition, ending: TaskEnding) -> Iterator[tuple[SlicePartition, Told]]:
    """The task with a driver that listens."""
    told = Told()
    server = TaskServer(("127.0.0.1:9",), 1, told)
    try:
        yield replace(task, report=server.report_to(task.slices), ending=ending), told
    finally:
        server.close()
