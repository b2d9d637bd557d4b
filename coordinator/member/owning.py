"""A member follows the group's assignment at batch boundaries: one call acquires, one call releases. Pure.

    look at the group  --> an assignment is due? compute it (`assigning`)
                       --> acquire assigned ranges, as soon as they are free or takeable
                       --> release ranges of others, each range only to a member that lives

A pinned member acquires the ranges that it names, and releases all others.
No other member waits meanwhile (rule: release-to-a-waiting-owner). These steps run while no slice of the member is
unconfirmed.
"""

from dataclasses import replace

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.rebalance import difference, owned_ranges, union
from coordinator.member import obeying
from coordinator.member.assigning import look_at_group
from coordinator.member.decision import Call, Decision, LookAgain, Seen
from coordinator.member.first_positions import place
from coordinator.member.kinds import Request
from coordinator.member.log_view import topics_again, topics_at_ms
from coordinator.member.mirroring import mirror_policy
from coordinator.member.requests import (
    Acquire,
    DeleteMirror,
    ForgetTopics,
    LogLine,
    Notify,
    ReadPartitionCounts,
    RecordGrowths,
    Release,
)
from coordinator.member.state import State
from coordinator.progress.ownership import Ownership, not_owned
from coordinator.redis.replies import Acquired, Look
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition

FORGET_MS = 10_000
"""How often it asks for topics to forget: a fraction of the shortest retention, which is a minute."""


def forget_topics(state: State, seen: Seen, call: Call) -> Decision:
    """Ask Redis to forget topics that no member subscribes to, after `offsetsRetention` (rule: topic-expiry).

    Only while the group has topics that this member does not read. The mirror would bring them back, so it forgets
    them too.
    """
    owning, now_ms = state.owning, seen.now_ms
    others = owning.acquired.topic_ids.keys() - state.log.topics.keys()
    if not others or (owning.forgot_ms is not None and now_ms - owning.forgot_ms < FORGET_MS):
        return Decision(state)
    forgotten = seen.done(ForgetTopics(tuple(sorted(others))))
    effects = (DeleteMirror(forgotten),) if forgotten and state.mirrored.allowed else ()
    return Decision(replace(state, owning=replace(owning, forgot_ms=now_ms)), effects)


def report_topics(state: State, seen: Seen, call: Call) -> Decision:
    """If a pattern matches other topics than at the join: join again, which reports them."""
    if state.owning.topics == frozenset(state.log.topics):
        return Decision(state)
    return Decision(replace(state, life=state.life.rejoining()), (), LookAgain())


def follow(state: State, seen: Seen, call: Call) -> Decision:
    """Acquire and release towards the assignment, as far as that is possible now."""
    state = place(state, seen, call)
    if state.life.verdict:
        return Decision(state, (), LookAgain())
    state, look, effects = look_at_group(state, seen, call)
    if look is None:
        return Decision(state, effects, LookAgain())
    state = mirror_policy(state, seen, look.policy)
    obeying.refuse_demands(look.policy, state.log.topics, call)
    if decision := obeying.rejected(state, look, call):
        return decision
    state = _catch_up(state, look.mine, seen, call)
    state = _with_look(state, look, seen, call)
    wanted = {tp: look.mine[tp] for tp in look.mine.keys() & _with_positions(state)}
    as_of, owning = (state.life.nonce, look.generation), state.owning
    if owning.stale or owning.as_of != as_of or owning.ranges != wanted:
        decision = _acquired(state, wanted, as_of, seen, call)
        state, effects = decision.state, (*effects, *decision.effects)
    owned = state.owning.ranges
    lacking = owned != look.mine and bool(difference(look.mine, owned))
    return Decision(replace(state, owning=replace(state.owning, lacking=lacking)), effects)


def _acquired(state: State, wanted: Ranges, as_of: tuple[str, int], seen: Seen, call: Call) -> Decision:
    if elsewhere := _elsewhere(state, seen, call):
        seen.done(Release(elsewhere))
    acquired = seen.done(_request(state, wanted))
    notices = notified(state.owning.acquired.ownership, acquired.ownership)
    surplus = difference(owned_ranges(acquired.ownership), wanted)
    released = seen.done(Release(surplus)) if surplus else 0
    if released:
        before, acquired = acquired, seen.done(_request(state, wanted, again=True))
        notices += notified(before.ownership, acquired.ownership, surplus)
    ranges = owned_ranges(acquired.ownership)
    moved = state.owning.moved or _moved(state, acquired, call)
    if moved and not state.owning.moved:
        notices = (*notices, LogLine(_MOVED.format(call.setup.settings.group)))
    owning = replace(state.owning, acquired=acquired, ranges=ranges, as_of=as_of, stale=False, moved=moved)
    return Decision(replace(state, owning=owning, turn=replace(state.turn, fresh=True, acquired=True)), notices)


_MOVED = (
    "key ranges of group {} have moved between this query and another application, and what Spark's stateful operators "
    "know of their keys has stayed behind. Remedy: if this query has any (groupBy, dropDuplicates, transformWithState, "
    "joins of streams), set sharing=never (docs/stateful.md); else there is nothing to do"
)


def _moved(state: State, now: Acquired, call: Call) -> bool:
    """Whether ranges that somebody has read have moved after a batch of this query, which reads with others."""
    before = state.owning
    if call.setup.settings.alone or not (before.as_of and call.offset.lanes):
        return False
    gone = difference(before.ranges, owned_ranges(now.ownership)).keys() & set(state.log.partitions)
    gained, topics = difference(owned_ranges(now.ownership), before.ranges), {tp.topic for tp in before.ranges}
    return bool(gone) or any(s.position > 0 for tp in gained if tp.topic in topics for s in now.progress[tp].segments)


def _elsewhere(state: State, seen: Seen, call: Call) -> Ranges:
    """At the first acquisition of a pinned member: all partitions that it does not name.

    An earlier life may own ranges of them. If these are idle, no offset names them.
    """
    if not call.setup.pinned or state.owning.as_of:
        return {}
    of_group = {TopicPartition(t, p) for t, count in seen.of(ReadPartitionCounts()).items() for p in range(count)}
    return dict.fromkeys(sorted(of_group - set(state.log.partitions)), (WHOLE,))


def _request(state: State, wanted: Ranges, *, again: bool = False) -> Request[Acquired]:
    """A request that names all partitions with positions: the answer is all that the member owns."""
    one = obeying.in_order(state, state.owning.policy)
    return Acquire({tp: wanted.get(tp, ()) for tp in sorted(_with_positions(state))}, again=again, one=one)


def _with_positions(state: State) -> frozenset[TopicPartition]:
    return frozenset(state.log.partitions) - state.owning.unplaced


def _catch_up(state: State, mine: Ranges, seen: Seen, call: Call) -> State:
    """Read the topics at once if other members know partitions that this one does not (rule: current-cluster).

    Once for the same partitions: if a broker does not know them yet, the next ordinary look shows them.
    """
    missing = frozenset(mine.keys() - set(state.log.partitions))
    if missing - state.owning.asked_for:
        state = place(replace(state, log=topics_again(state.log, seen, call, anew=True)), seen, call)
    return replace(state, owning=replace(state.owning, asked_for=missing))


def _with_look(state: State, look: Look, seen: Seen, call: Call) -> State:
    """The growths of the group. Growths that this process knows and Redis has lost are recorded again."""
    fields = {g.field for g in look.growths}
    if lost := tuple(g for g in state.owning.growths if g.field not in fields):
        seen.done(RecordGrowths(lost))
    growths = look.growths + lost
    policy = obeying.obeyed(look.policy, call)
    owning = replace(state.owning, targets=look.targets, growths=growths, policy=policy)
    owning = replace(owning, looked_at_ms=look.now_ms, topics_at_ms=topics_at_ms(state.log, look.now_ms, seen))
    return replace(state, owning=owning)


def notified(before: Ownership, now: Ownership, released: Ranges | None = None) -> tuple[Request[bool], ...]:
    """The call of the user's ownership listener: the difference between the ranges owned before and now.

        owned before, not now, released by itself   revoked
        owned before, not now                       lost; also if a new lane epoch shows another owner in between
        owned now, not before                       assigned

    The scripts write the events stream, with the same words.
    """
    if now == before:
        return ()
    gone, gained = _not_in(before, now), _not_in(now, before)
    lost = difference(gone, released or {})
    notice = Notify(difference(gone, lost), lost, gained)
    return (notice,) if gone or gained else ()


def left(before: Ownership, kept: Ranges) -> tuple[Request[bool], ...]:
    """The notice of a leave. It releases all but `kept`, which may be half written."""
    return notified(before, {}, difference(owned_ranges(before), kept))


def _not_in(some: Ownership, other: Ownership) -> Ranges:
    """The ranges of `some` that are not in `other` at the same lane epoch."""
    rest = {tp: union(not_owned(owned, other.get(tp, ()))) for tp, owned in some.items()}
    return {tp: ranges for tp, ranges in rest.items() if ranges}
