"""What the sink has completed becomes progress in Redis; part of the service, on its thread (spec 4.2, Fence, and 7).

An offset that Spark gives back as start is complete in the sink. Each lane of it that is still owned at its lane epoch
is committed; what is owned no more is refused, and asserted where this process knows that it was read.
A batch that this member never authorized was read by nobody: a sink that has its batch id already skips it.
"""

from coordinator.assignment.rebalance import union
from coordinator.clock import Clock
from coordinator.errors import SinkSkippedBatchError
from coordinator.member.evidence import Evidence
from coordinator.member.founding import Founding
from coordinator.member.holding import Holding
from coordinator.member.losses import Losses
from coordinator.member.membership import Membership
from coordinator.progress.ownership import Facts, Ownership, completed, facts_within, narrowed
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.store import RedisStore


class Committing:
    """Remembers what was confirmed last, and what is under way; see the module."""

    def __init__(
        self,
        store: RedisStore,
        membership: Membership,
        clock: Clock,
        evidence: Evidence,
        holding: Holding,
        founding: Founding,
        losses: Losses,
        *,
        unread_batches: bool,
    ) -> None:
        self._unread_batches = unread_batches
        self._store, self._membership, self._clock = store, membership, clock
        self._evidence, self._holding, self._founding, self._losses = evidence, holding, founding, losses
        self._confirmed: StreamOffset | None = None
        self._whole: StreamOffset | None = None  # the last that was confirmed, if nothing of it was skipped
        self._under_way: tuple[StreamOffset, Facts, str] | None = None

    def commit(self, start: StreamOffset) -> bool:
        """Commit what the sink completed; whether part of `start` was skipped, and must vanish from the next offset."""
        witnessed = self._evidence.returned(start)
        if start is self._whole:
            return self._done(skipped=False)
        mine = start if witnessed is None else narrowed(start, witnessed)
        mine = self._losses.within_logs(mine)
        if self._confirmed != start and start.member:
            self._commit(mine, completed(mine), witnessed, "" if self._unread_batches else start.digest)
            self._confirmed = start
            self._founding.committed()
        self._whole = start if mine is start else None
        return self._done(skipped=mine != start)

    def again(self) -> None:
        """Spark stops a query at any moment, also in a commit: what the sink has completed is then said once more."""
        under_way = self._under_way
        if under_way and self._membership.last(lambda caller: self._store.commit(caller, *under_way)):
            self._evidence.confirmed()

    def _done(self, *, skipped: bool) -> bool:
        self._evidence.confirmed()
        self._under_way = None
        self._founding.mirror_if_due(self._clock.now_ms())
        return skipped

    def _commit(self, offset: StreamOffset, facts: Facts, witnessed: Ownership | None, digest: str) -> None:
        self._under_way = offset, facts, digest
        done = self._membership.call(lambda caller: self._store.commit(caller, offset, facts, digest))
        self._holding.forget()
        if done.unread:
            self._refuse_unread()
        if done.exactly:
            self._holding.moved(offset, facts)
        refused = done.refused
        self._losses.completed(offset, refused)
        if refused:
            ranges = {tp: union(f.hashes for f in of_tp) for tp, of_tp in refused.items()}
            self._membership.tell("fence", "a commit of what is owned no more at its lane epoch", ranges)
        if refused and witnessed is not None:
            assertions = facts_within(self._evidence.facts, refused)
            self._membership.outside(lambda: self._founding.claim(offset, assertions))

    def _refuse_unread(self) -> None:
        """End the query: nothing of the batch was read, so nothing of it is unconfirmed, and its ranges are free."""
        self._evidence.confirmed()
        self._under_way = None
        self._membership.tell("skipped", "the sink completed a batch that it did not read; nothing of it was committed")
        raise SinkSkippedBatchError(
            "the sink completed a batch without reading it, so its records are unread and not committed: a sink skips "
            "a batch id that it has already, and batch ids begin at 0 with each new checkpoint",
            "give each checkpoint an output of its own, and start again with a new checkpointLocation (the group keeps "
            "its positions); or set allow.unread.batches=true if the query drops batches unread on purpose",
        )
