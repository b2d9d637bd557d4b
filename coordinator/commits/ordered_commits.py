"""Ordered commits: one that comes before its turn waits until all before it is done (rule: ordered-commit).

    stable 39     A reserves [40-44]     B reserves [45-49]         inclusive: the last offset done
    B commits [45-49]  -> waits: A holds the missing offsets
    A commits [40-44]  -> stable 44, A gets its answer
                       -> B's turn: stable 49, B gets its answer
    or A dies          -> B is refused when A's lease ends

Offsets without a record lie between rows. Redis does not know them, and the acknowledgements of rows do: `reserve_rows`
and `commit_rows` cover the holes before each row, so that no hole refuses a commit.

For workers whose commits must appear in offset order: of one member, or of several. A reservation in Redis is a
rectangle, offsets x hashes. B waits for A whichever hashes they have.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from coordinator.commits.commit_api import CommitApi, Committed
from coordinator.errors import CommitError, CoopKafkaError, OrderedCommitRefusedError
from coordinator.progress.acknowledgement import Acknowledgement
from coordinator.progress.ownership import Owned
from coordinator.redis.commits import Reservation, ReservedTurn
from coordinator.values.clock import BootClock, Clock
from coordinator.values.ranges import OffsetRange, union
from coordinator.values.subscription import TopicPartition

POLL_MS = 50
_WORKER = re.compile(r"[!-~]{1,200}")


@dataclass(frozen=True, slots=True)
class OrderedCommits:
    """The ordered commits of one worker. `worker` is its name: unique in its member, without spaces."""

    commits: CommitApi
    worker: str
    lease_ms: int = 45_000  # a reservation ends so long after the worker's last call
    clock: Clock = field(default_factory=BootClock)

    def __post_init__(self) -> None:
        if not _WORKER.fullmatch(self.worker):
            raise CommitError(f"{self.worker!r} is not the name of a worker", "pass 1 to 200 visible ASCII letters")

    def reserve(self, tp: TopicPartition, offsets: OffsetRange, *, lanes: Iterable[Owned] | None = None) -> None:
        """Reserve offsets that this worker reads, in `lanes` or in all lanes of the Commit API.

        Call it before the work on them, and again within `lease_ms` during the work.
        Raises `OrderedCommitRefusedError` if another worker of the member holds some of them, and the errors of
        `CommitApi.commit`.
        """
        self._ask(tp, self._reservation(tp, offsets, lanes), "held")

    def commit(self, tp: TopicPartition, offsets: OffsetRange, *, lanes: Iterable[Owned] | None = None) -> Committed:
        """Commit these offsets once all reserved offsets before them are done, of any hashes and any member.

        Raises `OrderedCommitRefusedError` if no worker holds missing offsets, and the errors of `CommitApi.commit`.
        Then nothing is committed.
        """
        wanted = self._reservation(tp, offsets, lanes)
        while (turn := self._ask(tp, wanted, "parked")).word == "WAIT":
            self.clock.wait(POLL_MS)
        if turn.word == "ALONE":
            by = f": {turn.who.partition(' ')[0]} reserved and never committed them" if turn.who else ""
            raise OrderedCommitRefusedError(
                f"{offsets} of {tp}: no active worker holds missing offsets from the stable offset {turn.stable} on{by}"
            )
        committed = self.commits.commit(tp, [offsets], lanes=wanted.lanes)
        with suppress(CoopKafkaError):  # done offsets are in no worker's way, and the lease ends the reservation
            self.commits.reserve(tp, wanted, "ended", 0)
        return committed

    def reserve_rows(self, texts: str | Iterable[str]) -> None:
        """Reserve rows that this worker received, by their `acknowledgement`, with the holes before each of them.

        Raises as `reserve` does; before any call `CorruptAcknowledgementError`, and `CommitError` for rows of another
        member.
        """
        for tp, lane, offsets in self._rows(texts):
            self.reserve(tp, offsets, lanes=[lane])

    def commit_rows(self, texts: str | Iterable[str]) -> tuple[Committed, ...]:
        """Commit such rows in ascending order, as `commit` does. Returns the answer to each commit.

        A commit covers touching rows of one lane. If one is refused, those before it stay done. Raises as above.
        """
        return tuple(self.commit(tp, offsets, lanes=[lane]) for tp, lane, offsets in self._rows(texts))

    def _rows(self, texts: str | Iterable[str]) -> list[tuple[TopicPartition, Owned, OffsetRange]]:
        """What rows cover, by partition and offset. Holes of other lanes wait for the end of the batch."""
        covered, (group, member) = dict[tuple[TopicPartition, Owned], list[OffsetRange]](), self.commits.caller
        for text in [texts] if isinstance(texts, str) else texts:
            own = Acknowledgement.parse(text)[0]
            if (own.group, own.member) != (group, member):
                raise CommitError(
                    f"the acknowledgement is of a row of member {own.member} of group {own.group!r}, and this worker "
                    f"commits for member {member} of group {group!r}",
                    "give each worker rows of its own member",
                )
            covered.setdefault((own.tp, own.lane), []).append(own.offsets)
        found = ((tp, lane, r) for (tp, lane), offsets in covered.items() for r in union(offsets))
        return sorted(found, key=lambda each: (each[0], each[2].start))

    def _reservation(self, tp: TopicPartition, offsets: OffsetRange, lanes: Iterable[Owned] | None) -> Reservation:
        return Reservation(self.worker, offsets, tuple(self.commits.lanes.get(tp, ()) if lanes is None else lanes))

    def _ask(self, tp: TopicPartition, wanted: Reservation, state: str) -> ReservedTurn:
        turn = self.commits.reserve(tp, wanted, state, self.lease_ms)
        if turn.word == "TAKEN":
            worker, _, held = turn.who.partition(" ")
            raise OrderedCommitRefusedError(
                f"{wanted.offsets} of {tp}: worker {worker} holds {held} of it",
                "reserve other offsets, or wait for the end of its lease",
            )
        return turn
