"""What a member does about poison: it says what it is at, blames who was lost, and keeps away from what is parked.

Part of the service, on its thread; `tell` on the heartbeat thread.
"""

from collections.abc import Iterable, Mapping
from functools import partial

from coordinator.clock import Clock
from coordinator.cost.batch_cost import LaneId
from coordinator.member.membership import Membership
from coordinator.plan.planning import OwnedRanges
from coordinator.plan.poison import (
    OffsetsOfARecord,
    Strike,
    forgiven,
    left_out,
    quarantined,
    without_struck,
    working_text,
)
from coordinator.progress.ownership import Ownership
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.store import RedisStore
from coordinator.subscription import TopicPartition

LOOK_MS = 1_000
"""How old what is known of strikes may be: an operator who releases a lane waits no longer."""


class Quarantine:
    """The strikes of the group as this member last saw them; see the module."""

    def __init__(self, store: RedisStore, membership: Membership, clock: Clock) -> None:
        self._store, self._membership, self._clock = store, membership, clock
        self._told = ("", "")
        self._looked_at: int | None = None
        self._strikes: tuple[Strike, ...] = ()
        self.alone: LaneId | None = None
        """The struck lane that the next batch tries, while all others wait."""
        self.trial = False
        """Whether the batch planned last tries a struck lane alone."""
        self._planned_with: tuple[Strike, ...] = ()

    def tell(self, at: Iterable[Slice], *, trial: bool) -> None:
        """Say which slices are begun and have not ended; only if it is news, and until Redis has heard it."""
        news = (working_text(at, alone=trial), self._membership.joined)  # after a loss of state all is news
        if news != self._told and self._membership.beat(lambda caller: self._store.working(caller, news[0])):
            self._told = news

    def blame(self) -> None:
        """Strike what lost members were at, this one's earlier life among them."""
        for member in sorted(self._membership.outside(self._store.at_work)):
            self._membership.outside(partial(self._store.strike, member))
            self._looked_at = None  # there may be strikes that this member has not seen

    @property
    def strikes(self) -> tuple[Strike, ...]:
        """Every strike there is, as of a second ago."""
        now = self._clock.now_ms()
        if self._looked_at is None or now - self._looked_at >= LOOK_MS:
            self._strikes, self._looked_at = self._membership.outside(self._store.strikes), now
        return self._strikes

    @property
    def parked(self) -> tuple[Strike, ...]:
        """The parked lanes that were seen last; asks nobody."""
        return tuple(s for s in self._strikes if s.parked)

    def limit(
        self,
        work: OwnedRanges,
        ends: Mapping[TopicPartition, int],
        offsets_of_a_record: OffsetsOfARecord,
    ) -> tuple[OwnedRanges, LaneId | None]:
        """The work without what is parked, and the lane that is to be planned alone, if there is one."""
        self.alone = None
        if not self.strikes:
            return work, None
        over = forgiven(self._strikes, work)
        if over:
            self._membership.outside(lambda: self._store.forgive(over))
            self._strikes = tuple(s for s in self._strikes if s not in over)
        limited, self.alone = quarantined(work, ends, self._strikes, offsets_of_a_record, others=self.trial)
        return limited, self.alone

    def planned(self) -> None:
        """A batch is planned as `limit` said last: after one in which a lane is tried alone it is the others' turn."""
        self.trial, self._planned_with = self.alone is not None, self._strikes

    def readable(self, verdict: Ownership, end: StreamOffset) -> Ownership:
        """What may be read of a batch that was planned before some of its hashes were struck.

        What may not is given up at its lane epoch, before anything is read: the next life would take all of the batch
        for completed.
        """
        self._looked_at = None
        kept = without_struck(verdict, end, self.strikes, self._planned_with)
        if given_up := left_out(verdict, kept):
            self._membership.call(lambda caller: self._store.abandon(caller, given_up))
        return kept
