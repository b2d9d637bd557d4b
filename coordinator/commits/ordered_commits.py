"""Ordered commits: one that comes before its turn waits until all before it is done (rule: ordered-commit).

    stable 39     A reserves [40-44]     B reserves [45-49]         inclusive: the last offset done
    B commits [45-49]  -> parked: A holds what is missing
    A commits [40-44]  -> stable 44, A is answered
                       -> B's is taken from the purgatory: stable 49, B is answered
    or A dies          -> B is refused when A's lease ends

For several workers of one member that must be seen to finish in offset order. What is reserved, by whom, and what is
parked, is in Redis for everybody to see. A worker waits in its own process.
"""

import re
from dataclasses import dataclass, field

from coordinator.clock import BootClock, Clock
from coordinator.commits.commit_api import CommitApi, Committed
from coordinator.errors import CommitError, OrderedCommitRefusedError
from coordinator.ranges import OffsetRange
from coordinator.redis.commits import Turn
from coordinator.subscription import TopicPartition

POLL_MS = 50
_WORKER = re.compile(r"[!-~]{1,200}")


@dataclass(frozen=True, slots=True)
class OrderedCommits:
    """The ordered commits of one worker; `worker` is a name that no other worker of the group has, without spaces."""

    commits: CommitApi
    worker: str
    lease_ms: int = 45_000  # how long a reservation outlives the worker's last sign of life
    clock: Clock = field(default_factory=BootClock)

    def __post_init__(self) -> None:
        if not _WORKER.fullmatch(self.worker):
            raise CommitError(f"{self.worker!r} is not the name of a worker", "give 1 to 200 visible ASCII letters")

    def reserve(self, tp: TopicPartition, offsets: OffsetRange) -> None:
        """Say that this worker reads these offsets; again, before `lease_ms` are over, while it works on them.

        Raises `OrderedCommitRefusedError` where another worker holds some of them, and what `CommitApi.commit` does.
        """
        self._ask(tp, offsets, "held")

    def commit(self, tp: TopicPartition, offsets: OffsetRange) -> Committed:
        """Commit these offsets once all before them is done; waits as long as others hold what is missing.

        Raises `OrderedCommitRefusedError` once nobody does, and what `CommitApi.commit` does: nothing is committed.
        """
        while (turn := self._ask(tp, offsets, "parked")).word == "WAIT":
            self.clock.wait(POLL_MS)
        if turn.word == "ALONE":
            raise OrderedCommitRefusedError(
                f"{offsets} of {tp}: no live worker holds the missing offsets from the stable offset {turn.stable} on",
                f"read again from offset {turn.stable}: the worker that held these offsets died, or none reserved them",
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
