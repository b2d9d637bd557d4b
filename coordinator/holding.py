"""What a member holds: it follows the group's assignment, one range at a time, at batch boundaries (spec 4.2).

    look --> an assignment is due? compute it; the first one recorded wins
         --> release what others should own, each range only to a member that is there to take it
         --> acquire what this member should own, as soon as it is free or takeable

Nobody else waits meanwhile. Called when nothing of the member is unconfirmed. Part of the service,
on its thread.
"""

from collections.abc import Mapping

from coordinator.assignment_text import Ranges
from coordinator.assignors.assignor import Assignor
from coordinator.assignors.check import check
from coordinator.founding import Founding
from coordinator.log_view import LogView
from coordinator.membership import Membership
from coordinator.rebalance import beyond, handed_over, owned_ranges
from coordinator.redis_membership import Look
from coordinator.redis_store import Acquired, RedisStore
from coordinator.subscription import TopicPartition


class Holding:
    """The ranges a member owns, with their positions, as of the last time they were asked for."""

    def __init__(
        self, store: RedisStore, membership: Membership, founding: Founding, view: LogView, assignor: Assignor
    ) -> None:
        self._store, self._membership, self._founding = store, membership, founding
        self._view, self._assignor = view, assignor
        self._acquired: Acquired | None = None
        self._as_of: tuple[str, int] | None = None  # nonce and generation
        self._placed: frozenset[TopicPartition] = frozenset()
        self._placed_as_of = ""  # nonce
        self._topics: frozenset[str] | None = None
        self.targets: Mapping[TopicPartition, int] = {}  # AvailableNow's, of all members; see `Pace.adopt`
        self.fresh = False  # whether what is held was asked for in this call

    def begin(self) -> None:
        """A new call: what was asked for before is good enough to see that there is nothing to do, not to plan from.

        Positions may have been raised since, by an earlier owner who asserts what its sink completed.
        """
        self.fresh = False

    def forget(self) -> None:
        """Ask again at the next refresh: positions have moved."""
        self._acquired = None

    def refresh(self) -> Acquired:
        """What is held once the assignment has been followed as far as it can be now."""
        self._tell_topics()
        self._place()
        look = self._look()
        self.targets = look.targets
        held = self._acquired if self._as_of == (self._membership.joined, look.generation) else None
        there = frozenset(self._view.partitions)
        wanted = {tp: ranges for tp, ranges in look.mine.items() if tp in there}
        if held and owned_ranges(held.ownership) == wanted:
            return held
        return self._follow(wanted, look.generation)

    def _follow(self, wanted: Ranges, generation: int) -> Acquired:
        held = self._acquire(wanted)
        surplus = beyond(owned_ranges(held.ownership), wanted)
        if surplus and self._release(surplus):
            held = self._acquire(wanted)
        self._acquired, self._as_of, self.fresh = held, (self._membership.joined, generation), True
        return held

    def _release(self, surplus: Ranges) -> bool:
        """Give up what others should own and are there to take; whether anything was."""
        pieces = handed_over(surplus, self._membership.outside(self._store.assignment))
        return bool(pieces) and self._membership.call(lambda caller: self._store.release(caller, pieces)) > 0

    def _acquire(self, wanted: Ranges) -> Acquired:
        """Everything that is owned, with what of `wanted` was free or takeable."""
        partitions = {tp: wanted.get(tp, ()) for tp in self._view.partitions}
        return self._membership.call(lambda caller: self._store.acquire(caller, partitions))

    def _look(self) -> Look:
        while True:
            look = self._membership.call(self._store.look)
            if not look.occasion:
                return look
            self._assign(look)

    def _assign(self, look: Look) -> None:
        """Compute the assignment that is due, check it, record it; another member's may be there first."""
        members = self._membership.outside(lambda: self._store.subscribers(look.members))
        counts = self._membership.outside(self._store.partition_counts)
        if {m.member for m in members} != set(look.members):
            return  # somebody has left since: look again
        previous = self._membership.outside(self._store.assignment)
        assignment = self._assignor.assign(members, counts, previous)
        check(assignment, members, counts)
        protocol = f"{self._assignor.name} {self._assignor.version}"
        self._membership.call(lambda caller: self._store.assign(caller, look.occasion, protocol, assignment))

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
