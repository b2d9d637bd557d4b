"""What a member holds: it follows the group's assignment, one range at a time, at batch boundaries (spec 4.2).

    look --> an assignment is due? compute it (`leading`)
         --> release what others should own, each range only to a member that is there to take it
         --> acquire what this member should own, as soon as it is free or takeable

Nobody else waits meanwhile. Called when nothing of the member is unconfirmed. Part of the service,
on its thread.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.rebalance import difference, owned_ranges
from coordinator.member.founding import Founding
from coordinator.member.hand_overs import HandOvers
from coordinator.member.leading import Leading
from coordinator.member.log_view import LogView
from coordinator.member.membership import Membership
from coordinator.progress.growth import Growth
from coordinator.progress.ownership import Facts, lane_ranges
from coordinator.progress.segments import Progress, Segment
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.calls import Answer, Caller
from coordinator.redis.store import Acquired, RedisStore
from coordinator.settings import GroupSettings
from coordinator.subscription import TopicPartition
from coordinator.verdicts import Lost


class Holding:
    """The ranges a member owns, with their positions, as of the last time they were asked for."""

    def __init__(
        self,
        store: RedisStore,
        membership: Membership,
        founding: Founding,
        view: LogView,
        leading: Leading,
        settings: GroupSettings,
    ) -> None:
        self._store, self._membership, self._founding = store, membership, founding
        self._view, self._leading = view, leading
        self.hand_overs = HandOvers(settings.listener)
        self._acquired: Acquired | None = None
        self._ranges: Ranges = {}  # of what was acquired
        self._as_of: tuple[str, int] | None = None  # nonce and generation
        self._placed: frozenset[TopicPartition] = frozenset()
        self._placed_as_of = ""  # nonce
        self._topics: frozenset[str] | None = None
        self._asked_for: AbstractSet[TopicPartition] = frozenset()
        self.targets: Mapping[TopicPartition, int] = {}  # AvailableNow's, of all members; see `Pace.adopt`
        self.growths: tuple[Growth, ...] = ()  # of all the group's topics, as of the last look
        self.looked_at_ms = 0  # Redis TIME of it
        self._stale = False  # whether positions have moved since
        self.fresh = False  # whether what is held was asked for in this call
        self.taken = False  # whether there may be ranges in it that were not held before this call

    def begin(self) -> None:
        """A new call: what was asked for before is good enough to see that there is nothing to do, not to plan from.

        Positions may have been raised since, by an earlier owner who asserts what its sink completed.
        """
        self.fresh = self.taken = False

    def forget(self) -> None:
        """Ask again at the next refresh: positions have moved."""
        self._stale = True

    def moved(self, offset: StreamOffset, facts: Facts) -> None:
        """All of `offset` was committed just now and is done exactly as far as `facts` say.

        Where that is all this member holds there is nothing to ask for.
        """
        held = self._acquired
        if held and self._is(held, offset):
            moved = {tp: Progress(tuple(Segment(f.hashes, f.position) for f in of_tp)) for tp, of_tp in facts.items()}
            self._acquired = replace(held, progress={**held.progress, **moved}, whole={**held.whole, **moved})
            self._stale, self.fresh = False, True

    def _is(self, held: Acquired, offset: StreamOffset) -> bool:
        """Whether `offset` is of all that was held last, at the same lane epochs, in every topic of the group."""
        owned = {tp: owned for tp, owned in held.ownership.items() if owned}
        topics = {tp.topic: offset.topic_ids.get(tp.topic) for tp in offset.lanes}
        same = (held.reset, held.topic_ids) == (offset.reset, topics)
        return same and owned == {tp: lane_ranges(lanes) for tp, lanes in offset.rows.items()}

    def refresh(self) -> Acquired:
        """What is held once the assignment has been followed as far as it can be now."""
        self._tell_topics()
        self._place()
        look = self._leading.look()
        self._catch_up(look.mine)
        self.targets, self.looked_at_ms = look.targets, look.now_ms
        self.growths = self._membership.outside(lambda: self._founding.growths_with(look.growths))
        held = self._acquired if not self._stale and self._as_of == (self._membership.joined, look.generation) else None
        there = frozenset(self._view.partitions)
        wanted = {tp: ranges for tp, ranges in look.mine.items() if tp in there}
        if held and self._ranges == wanted:
            return held
        return self._follow(wanted, look.generation)

    def _follow(self, wanted: Ranges, generation: int) -> Acquired:
        held = self._acquire(wanted)
        self.hand_overs.owned(held.ownership)
        surplus = difference(owned_ranges(held.ownership), wanted)
        if surplus and self._release(surplus):
            held = self._acquire(wanted)
            self.hand_overs.owned(held.ownership, surplus)
        self._acquired, self._as_of, self._stale = held, (self._membership.joined, generation), False
        self.fresh = self.taken = True
        self._ranges = owned_ranges(held.ownership)
        return held

    def _release(self, surplus: Ranges) -> bool:
        """Give up what others should own and are there to take; whether anything was."""
        pieces = self._membership.outside(lambda: self._store.heirs(surplus))
        return bool(pieces) and self._membership.call(lambda caller: self._store.release(caller, pieces)) > 0

    def _acquire(self, wanted: Ranges) -> Acquired:
        """Everything that is owned, with what of `wanted` was free or takeable."""
        partitions = {tp: wanted.get(tp, ()) for tp in self._view.partitions}
        return self._membership.call(lambda caller: self._acquired_by(caller, partitions))

    def _acquired_by(self, caller: Caller, partitions: Ranges) -> Answer[Acquired]:
        placed = self._placed_as_of == caller.nonce and self._placed.issuperset(partitions)
        try:
            return self._store.acquire(caller, partitions, placed=placed)
        except Lost:
            self._placed = frozenset()  # what nothing proves is placed anew, and asked for only once
            raise

    def _catch_up(self, mine: Ranges) -> None:
        """Ask Kafka at once if others have seen more than we: our view of the cluster is older (spec 4.2).

        Once for the same partitions: where a broker does not know them yet, the next ordinary look will show them.
        """
        missing = mine.keys() - set(self._view.partitions)
        if missing - self._asked_for:
            self._view.ask()
            self._place()
        self._asked_for = missing

    def _place(self) -> None:
        """Partitions seen for the first time get positions, if they have none.

        After a loss of state all of them are seen for the first time: an older copy may not know them.
        """
        if self._placed_as_of != self._membership.joined:
            self._placed, self._placed_as_of = frozenset(), self._membership.joined
        if new := [tp for tp in self._view.partitions if tp not in self._placed]:
            self._membership.outside(lambda: self._founding.place(new))
            self._placed |= frozenset(new)

    def _tell_topics(self) -> None:
        """A pattern means other topics than when this member joined: say so."""
        topics = frozenset(self._view.topics)
        if self._topics is not None and topics != self._topics:
            self._membership.rejoin()
        self._topics = topics
