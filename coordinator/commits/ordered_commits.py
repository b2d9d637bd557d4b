"""Ordered commits: one that comes before its turn waits until all before it is done (rule: ordered-commit).

    stable 39     A reserves [40-44]     B reserves [45-49]         inclusive: the last offset done
    B commits [45-49]  -> waits: A holds the missing offsets
    A commits [40-44]  -> stable 44, A gets its answer
                       -> B's turn: stable 49, B gets its answer
    or A dies          -> B is refused when A's lease ends

For several workers of one member whose commits must appear in offset order. Reservations are in Redis.
"""

import re
import time
from dataclasses import dataclass

from coordinator.commits.commit_api import CommitApi, Committed
from coordinator.errors import CommitError, OrderedCommitRefusedError
from coordinator.ranges import OffsetRange
from coordinator.redis.commits import Turn
from coordinator.subscription import TopicPartition

POLL_S = 0.05
_WORKER = re.compile(r"[!-~]{1,200}")


@dataclass(frozen=True, slots=True)
class OrderedCommits:
    """The ordered commits of one worker. `worker` is its name: unique in the group, without spaces."""

    commits: CommitApi
    worker: str
    lease_ms: int = 45_000  # a reservation ends so long after the worker's last call

    def __post_init__(self) -> None:
        if not _WORKER.fullmatch(self.worker):
            raise CommitError(f"{self.worker!r} is not the name of a worker", "pass 1 to 200 visible ASCII letters")

    def reserve(self, tp: TopicPartition, offsets: OffsetRange) -> None:
        """Reserve offsets that this worker reads. Repeat the call within `lease_ms` while it works on them.

        Raises `OrderedCommitRefusedError` if another worker holds some of them, and the errors of `CommitApi.commit`.
        """
        self._ask(tp, offsets, "held")

    def commit(self, tp: TopicPartition, offsets: OffsetRange) -> Committed:
        """Commit these offsets once all offsets before them are done. Waits while other workers hold missing ones.

        Raises `OrderedCommitRefusedError` if no worker holds them, and the errors of `CommitApi.commit`. Then nothing
        is committed.
        """
        while (turn := self._ask(tp, offsets, "parked")).word == "WAIT":
            time.sleep(POLL_S)
        if turn.word == "ALONE":
            raise OrderedCommitRefusedError(
                f"{offsets} of {tp}: no live worker holds the missing offsets from the stable offset {turn.stable} on"
            )
        return self.commits.commit(tp, [offsets])

    def _ask(self, tp: TopicPartition, offsets: OffsetRange, state: str) -> Turn:
        turn = self.commits.reserve(tp, self.worker, offsets, state, self.lease_ms)
        if turn.word == "TAKEN":
            worker, _, held = turn.who.partition(" ")
            raise OrderedCommitRefusedError(
                f"{offsets} of {tp}: worker {worker} holds {held} of it",
                "reserve other offsets, or wait for the end of its lease",
            )
        return turn
