"""What a member does when it is its turn to compute the group's assignment (G; spec 4.1, 4.2).

    look --> not our turn: what is assigned to us
         --> our turn: agree on an assignor that all know --> compute --> check --> record --> look again

Whoever looks first has the turn; if nothing comes of it another member has it next. The first assignment recorded
wins, so nothing depends on there being one leader. Part of the service, on its thread.
"""

import logging
from collections.abc import Collection

from coordinator.assignment.assigning import computed
from coordinator.assignment.assignment_text import seniority
from coordinator.assignment.protocols import Protocol, agree
from coordinator.assignment.spare import spared
from coordinator.assignors.assignor import Assignment, Assignor, Subscriber
from coordinator.errors import InconsistentGroupProtocolError
from coordinator.member.membership import Membership
from coordinator.redis.membership import Look
from coordinator.redis.store import RedisStore

_log = logging.getLogger(__name__)


class Leading:
    """Computes assignments with one of the assignors that this member knows."""

    def __init__(self, store: RedisStore, membership: Membership, assignors: tuple[Assignor, ...]) -> None:
        self._store, self._membership = store, membership
        self._assignors = {Protocol(a.name, a.version): a for a in assignors}

    def look(self) -> Look:
        """What is assigned to this member, once there is nothing for it to compute.

        Raises `InconsistentGroupProtocolError` if it shares no assignor with those who joined before it.
        """
        while True:
            look = self._membership.call(self._store.look)
            if look.occasion:
                self._assign(look)
            elif look.protocol and Protocol.parse(look.protocol) not in self._assignors:
                self._refuse_if_excluded(self._assignment().keys())
            else:
                return look

    def _assign(self, look: Look) -> None:
        """Compute the assignment and record it, without those who know none of the assignors that the others share."""
        members = self._subscribers(look.members)
        if self._membership.member not in {m.member for m in members}:
            return  # its entry is gone: the next look is fenced
        agreement = agree(seniority(members))
        if self._membership.member in agreement.excluded:
            raise self._refused(agreement.excluded[self._membership.member])
        if agreement.protocol not in self._assignors:
            self._membership.rejoin()  # its entry is another life's, which fences it, or damaged: it is written again
            return
        counts = self._membership.outside(self._store.partition_counts)
        policy = self._membership.outside(self._store.policy)
        working = [m for m in members if m.member not in agreement.excluded]
        assignor, previous = self._assignors[agreement.protocol], self._assignment()
        made = computed(assignor, spared(working), counts, previous, policy)
        assignment = {m.member: made.assignment.get(m.member, {}) for m in members}  # who gets nothing is told so
        protocol = str(agreement.protocol)
        new = self._membership.call(
            lambda caller: self._store.assign(caller, look.occasion, protocol, assignment, made.failure)
        )
        if new and (nobody := set(look.members) - {m.member for m in members}):
            self._membership.tell("mend", f"a lease without a member is counted no more: {', '.join(sorted(nobody))}")
        if new and made.failure:
            _log.warning("the assignor %s failed here, grouped assigns whole partitions: %s", protocol, made.failure)

    def _refuse_if_excluded(self, members: Collection[str]) -> None:
        """Another member computed an assignment without this one; if that has changed since, have a new one made."""
        me = self._membership.member
        subscribers = self._subscribers({*members, me})
        excluded = agree(seniority(subscribers)).excluded if subscribers else {}
        if me in excluded:
            raise self._refused(excluded[me])
        self._membership.rejoin()

    def _refused(self, why: str) -> InconsistentGroupProtocolError:
        return InconsistentGroupProtocolError(
            f"no assignor is common to this member and the group: {why}",
            "name in the option assignor one that the others know, after the one you want; once all members name "
            "the new one, the group uses it",
        )

    def _subscribers(self, members: Collection[str]) -> tuple[Subscriber, ...]:
        return self._membership.outside(lambda: self._store.subscribers(members))

    def _assignment(self) -> Assignment:
        return self._membership.outside(self._store.assignment)
