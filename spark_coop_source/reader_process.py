"""What lives in the reader process beside the driver: connections, the heartbeat thread, the end by SIGTERM.

`query.stop()` ends the process by SIGTERM, twice, with the default action: the first is turned into
SystemExit, so that Spark's runner calls `stop()`; a second must not interrupt it. A killed JVM is
seen as the end of the runner's input (EOFError), which ends in `stop()` too; it is no leave, since its tasks may
still write.
"""

import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from types import FrameType
from typing import Protocol

from coordinator.clock import BootClock
from coordinator.errors import MissingOptionError
from coordinator.pace import Limits
from coordinator.redis_client import RedisClient
from coordinator.redis_membership import Joining
from coordinator.redis_store import RedisStore
from coordinator.service import Service
from coordinator.standalone import Standalone
from coordinator.stream_offset import StreamOffset
from coordinator.subscription import Assigned, TopicPartition
from spark_coop_source.options import SourceOptions
from spark_coop_source.wiring import cutting, group_settings, kafka_log


class Session(Protocol):
    """What a stream reader asks, with a group or without."""

    def initial(self) -> StreamOffset:
        """The offset before the first batch."""

    def set_targets(self) -> None:
        """AvailableNow: end where the log ends now."""

    def next_offset(self, start: StreamOffset, limits: Limits) -> StreamOffset | None:
        """The end of the next batch; None if there is nothing to do."""

    def authorize(self, end: StreamOffset) -> StreamOffset:
        """The part of a batch that may be read."""

    def log_ends(self) -> Mapping[TopicPartition, int]:
        """The log ends at the last look."""

    def close(self) -> None:
        """Give back what is held."""


def exit_on_sigterm() -> None:
    """Turn the first SIGTERM into SystemExit, ignore further ones; only on the main thread, which is Spark's."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _exit)


def _exit(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)


class GroupSession:
    """A member of a group: its service, and the thread that keeps its lease."""

    def __init__(self, options: SourceOptions) -> None:
        exit_on_sigterm()
        self._group = str(options.group)
        self._clock = BootClock()
        self._client = RedisClient(str(options.redis_url))
        self._checked = False
        self._kafka = kafka_log(options)
        settings = group_settings(options, self._group)
        store = RedisStore.of(self._client, settings)
        self._service = Service(
            settings,
            options.subscription,
            options.starting,
            cutting(options),
            store=store,
            log=self._kafka,
            clock=self._clock,
            me=Joining(
                {"host": socket.gethostname(), "pid": str(os.getpid())},
                application="" if options.several_queries else f"{socket.gethostname()}/{os.getppid()}",
            ),
        )
        self._stopped = threading.Event()
        self._beating = threading.Thread(
            target=self._beat, args=(options.heartbeat_ms / 1000,), name="coop-kafka-heartbeat", daemon=True
        )

    def initial(self) -> StreamOffset:
        """A constant; the group's first positions exist when it returns."""
        self._ready()
        self._service.first_positions()
        return StreamOffset(self._group)

    def set_targets(self) -> None:
        """See `Service.set_targets`."""
        self._ready()
        self._service.set_targets()

    def next_offset(self, start: StreamOffset, limits: Limits) -> StreamOffset | None:
        """See `Service.next_offset`."""
        self._ready()
        return self._service.next_offset(start, limits)

    def authorize(self, end: StreamOffset) -> StreamOffset:
        """See `Service.authorize`."""
        self._ready()
        return self._service.authorize(end)

    def log_ends(self) -> Mapping[TopicPartition, int]:
        """See `Service.log_ends`."""
        return self._service.log_ends()

    def close(self) -> None:
        """Stop the heartbeat, leave, drop the connections."""
        self._stopped.set()
        self._clock.close()
        if self._beating.is_alive():
            self._beating.join()
        if not isinstance(sys.exception(), EOFError):
            self._service.leave()
        self._kafka.close()
        self._client.close()

    def _ready(self) -> None:
        if not self._checked:
            self._service.check_store(self._client.require_noeviction)
            self._beating.start()
            self._checked = True

    def _beat(self, every_s: float) -> None:
        while not self._stopped.wait(every_s):
            self._service.heartbeat()


class StandaloneSession:
    """No group and no Redis: positions live in the checkpoint only."""

    def __init__(self, options: SourceOptions) -> None:
        exit_on_sigterm()
        if not isinstance(options.subscription, Assigned):
            raise MissingOptionError(
                "a stream without a group reads given partitions only",
                "add the options group and redis.url, or use assign",
            )
        self._kafka = kafka_log(options)
        self._standalone = Standalone(
            options.subscription,
            options.starting,
            cutting(options),
            log=self._kafka,
            clock=BootClock(),
            fail_on_data_loss=options.fail_on_data_loss,
        )
        self.initial = self._standalone.initial
        self.set_targets = self._standalone.set_targets
        self.next_offset = self._standalone.next_offset
        self.authorize = self._standalone.authorize
        self.log_ends = self._standalone.log_ends

    def close(self) -> None:
        """Drop the connections."""
        self._kafka.close()
