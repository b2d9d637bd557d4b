"""A member computes the group's assignment when it is its turn. Pure.

    look --> not its turn: the ranges assigned to it
         --> its turn: agree on a common assignor --> compute --> check --> record --> look again

The member that looks first has the turn. If it records nothing, another member has the turn next. The first recorded
assignment wins, so correctness needs no single leader (rule: first-assignment-wins).

The look also tells the role of a standby (rule: standby-takes-over; rule: drain-hands-over):

    standby  --> working   a member was lost, and Redis has chosen this one in its place
    working  --> standby   this one was lost for a while, and another standby has its place
    no role  --> standby   an operator has drained this member
    standby  --> no role   this member was drained, and has joined again

A member has no role if it does not want to be a standby, and no operator has drained it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from coordinator.assignment.assignment_text import seniority
from coordinator.assignment.assignors.assignor import Assignor, Subscriber
from coordinator.assignment.assignors.joined import equal_counts
from coordinator.assignment.assignors.rack_aware import RackAware
from coordinator.assignment.protocols import Agreement, Protocol, agree
from coordinator.assignment.settings import GroupSettings
from coordinator.assignment.spare import spared
from coordinator.errors import InconsistentGroupProtocolError
from coordinator.member.decision import Call, Seen
from coordinator.member.kinds import Request
from coordinator.member.requests import (
    Assign,
    Compute,
    Event,
    LogLine,
    LookAtGroup,
    ReadAssignment,
    ReadLeaderRacks,
    ReadPartitionCounts,
    ReadPolicy,
    ReadSubscribers,
)
from coordinator.member.state import State
from coordinator.redis.group_state import STANDBY, WORKING
from coordinator.redis.replies import Look

Effects = tuple[Request[Any], ...]

_ROLES = {
    STANDBY: "group {}: member {} is a standby: it reads nothing, and takes over when a working member is lost",
    WORKING: "group {}: member {} works from now on: too few other members do",
}
_DRAINED = "group {}: member {} was drained, as ordered: other members get its ranges, and its query may be stopped"


def look_at_group(state: State, seen: Seen, call: Call) -> tuple[State, Look | None, Effects]:
    """The assignment as this member sees it. None if it computed one or must join again: then it looks again.

    Raises `InconsistentGroupProtocolError` if it has no assignor in common with the members before it.
    """
    assignors = {Protocol(a.name, a.version): a for a in call.setup.settings.assignors}
    look = seen.done(LookAtGroup())
    state, lines = _with_role(state, look.role, call.setup.settings)
    effects: Effects | None = None
    if look.occasion:
        effects = _assign(state, look, assignors, seen, call.setup.cutting.joined)
    elif look.protocol and Protocol.parse(look.protocol) not in assignors:
        _refuse_if_excluded(state, seen)
    else:
        return state, look, lines
    return (replace(state, life=state.life.rejoining()) if effects is None else state), None, (*lines, *(effects or ()))


def _with_role(state: State, role: str, settings: GroupSettings) -> tuple[State, Effects]:
    """The state with this role, and a line for the driver's log if it is another one."""
    drained_no_more = not role and not settings.standby
    if role == state.life.role or not (role in _ROLES or drained_no_more):
        return state, ()
    drained = role == STANDBY and not settings.standby
    text = _DRAINED if drained else _ROLES.get(role, "")
    lines = (LogLine(text.format(settings.group, state.life.member), info=drained),) if text else ()
    return replace(state, life=replace(state.life, role=role)), lines


def _assign(
    state: State, look: Look, assignors: Mapping[Protocol, Assignor], seen: Seen, joined: Collection[str]
) -> Effects | None:
    """Compute the assignment and record it; None if this member's entry is of another life, or damaged.

    Leaves out members without an assignor in common with the others.
    """
    me, members = state.life.member, seen.of(ReadSubscribers(look.members))
    if me not in {m.member for m in members}:
        return ()  # its entry is gone: the next look is fenced
    agreement = _agreed(me, members)
    if agreement.protocol not in assignors:
        return None
    counts, policy, previous = seen.of(ReadPartitionCounts()), seen.of(ReadPolicy()), seen.of(ReadAssignment())
    working = [m for m in members if m.member not in agreement.excluded]
    counts = equal_counts([t for t in joined if any(t in m.topics for m in working)], counts)
    policy, assignor = policy.joined(joined), _informed(assignors[agreement.protocol], counts, seen)
    computed = seen.of(Compute(assignor, tuple(spared(working)), counts, previous, policy))
    assignment = {m.member: computed.assignment.get(m.member, {}) for m in members}  # an empty one is recorded too
    protocol = str(agreement.protocol)
    if not seen.done(Assign(look.occasion, protocol, assignment, computed.failure)):
        return ()
    return tuple(_notices(look, {m.member for m in members}, protocol, computed.failure))


def _informed(assignor: Assignor, topics: Iterable[str], seen: Seen) -> Assignor:
    """The assignor, with the racks of the leaders now if it uses them."""
    return RackAware(seen.of(ReadLeaderRacks(tuple(sorted(topics))))) if isinstance(assignor, RackAware) else assignor


def _notices(look: Look, members: Collection[str], protocol: str, failure: str) -> Iterator[Request[Any]]:
    if absent := set(look.members) - set(members):
        yield Event("mend", f"a lease without a member no longer counts: {', '.join(sorted(absent))}")
    if failure:
        yield LogLine(f"the assignor {protocol} failed here, grouped assigns whole partitions: {failure}")


def _refuse_if_excluded(state: State, seen: Seen) -> None:
    """Another member computed an assignment without this one: fail if the assignors still exclude it."""
    me = state.life.member
    names = tuple(sorted({*seen.of(ReadAssignment()), me}))
    if subscribers := seen.of(ReadSubscribers(names)):
        _agreed(me, subscribers)


def _agreed(me: str, members: Sequence[Subscriber]) -> Agreement:
    """The assignor that members agree on; raises `InconsistentGroupProtocolError` if it excludes this member."""
    agreement = agree(seniority(members))
    if me in agreement.excluded:
        raise InconsistentGroupProtocolError(
            f"no assignor is common to this member and the group: {agreement.excluded[me]}",
            "name in the option assignor one that the others know, after the one you want; once all members name "
            "the new one, the group uses it",
        )
    return agreement
