"""First positions of a new group, and of partitions that appear later. Pure.

Redis decides, then Kafka's own group offsets, then the starting offsets. A position is set only where none is, so
`latest` is not resolved twice (rule: first-positions). A mirror without a group in Redis is a loss, not a new group.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from coordinator.errors.quoting import VALUE, bounded
from coordinator.member.decision import Call, Decision, LookAgain, Return, Seen
from coordinator.member.founding import copied, unreadable
from coordinator.member.kinds import Request
from coordinator.member.log_view import mirrored_topics
from coordinator.member.mirroring import mirror
from coordinator.member.proving import Proofs, proofs_of
from coordinator.member.requests import (
    Claim,
    CreatePositions,
    Event,
    LogLine,
    ReadGroupOffsets,
    ReadLogEnds,
    ReadStable,
    ReadStatus,
    ResolveOffsets,
)
from coordinator.member.state import State
from coordinator.progress import mirror as mirroring
from coordinator.redis.replies import Status
from coordinator.values.offset_spec import Earliest, Latest, within
from coordinator.values.subscription import TopicPartition
from coordinator.values.verdicts import Absent, Lost, Recovering, Replaced, Verdict

Positions = Mapping[TopicPartition, int]


def first_positions(state: State, seen: Seen, call: Call) -> Decision:
    """Create positions of subscribed partitions that have none; then update the mirror if it lacks one."""
    group, found = call.setup.settings.group, seen.of(ReadGroupOffsets())
    offsets = mirroring.of_this_schema(found or {}, group)
    status = seen.of(ReadStatus())
    if found is None and status is None and not state.life.founding:
        raise unreadable(group)
    if loss := _loss(state, status, offsets, seen):
        return Decision(replace(state, life=replace(state.life, verdict=loss)), (), LookAgain())
    if status is None and (others := mirroring.of_other_topics(offsets, state.log.topics)):
        topic = min(others)
        raise copied(group, topic, others[topic], state.log.topics[topic].id)
    offsets = mirroring.usable(offsets, state.log.topics)
    offsets = mirroring.of_founding(offsets, status.founding) if status else offsets
    known = seen.of(ReadStable(tuple(status.topics))) if status else {}
    there = {tp: offset for tp, (offset, _) in offsets.items()}
    warnings = _reads_on({**there, **known}, status, state, seen, call)
    new = [tp for tp in state.log.partitions if tp not in known]
    if new or not status:
        known_topics = {tp.topic for tp in known} | (status.topics.keys() if status else set())
        wished = _wished(new, known_topics, state, seen, call)
        first = {tp: there.get(tp, position) for tp, position in wished.items()}
        founding = seen.done(creation(state, first, call, create=status is None))
        state = replace(state, life=replace(state.life, founding=founding))
    elif status:
        state = replace(state, life=replace(state.life, founding=status.founding))
    ours = mirroring.mirrored(offsets, state.log.topics)
    if any(tp not in ours for tp in state.log.partitions):
        state = mirror(state, seen)
    return Decision(replace(state, shown=replace(state.shown, start_used=True)), warnings, Return(None))


def _loss(state: State, status: Status | None, offsets: mirroring.GroupOffsets, seen: Seen) -> Verdict | None:
    """A mirror without Redis is a loss, also if it is of topics that this member does not read."""
    known = state.life.founding
    if status is None:
        mirror = mirroring.mirrored(offsets, mirrored_topics(state.log.topics, offsets, seen))
        return Absent("Redis holds nothing of this group") if mirror or known else None
    if known and status.founding != known:
        return Replaced(status.founding)
    ours = mirroring.of_founding(mirroring.usable(offsets, state.log.topics), status.founding)
    if status.reset < mirroring.latest_reset(ours):
        return Lost("Kafka's own group knows of a reset that Redis does not")
    return None


def _reads_on(
    positions: Positions, status: Status | None, state: State, seen: Seen, call: Call
) -> tuple[Request[bool], ...]:
    """One log line and an event if a query without a checkpoint begins in a group that has positions.

    A warning only if nobody else reads the group, and the query reads less than its start promises: otherwise an
    application joins it, which is no reset, or no record is missing.
    """
    group, option = call.setup.settings.group, call.setup.settings.starting_option
    held = [f"{tp} at {offset}" for tp, offset in sorted(positions.items()) if tp.topic in state.log.topics]
    if state.shown.start_used or not held:
        return ()
    unused = f"; option {option} is not used" if option else ""
    why = f"a query without a checkpoint reads on where the group stands: {bounded(', '.join(held), VALUE)}{unused}"
    return (
        LogLine(
            f"group {group}: {why}. Remedy: to read all records again, as for a full refresh, stop the queries of the "
            f"group and run coop-kafka reset-offsets {group} --all-topics --to-earliest --execute before the start; to "
            "read from another start as well, use another group.",
            info=(status is not None and status.alive > 0) or _nothing_is_left_out(positions, state, seen, call),
        ),
        *((Event("continue", why),) if status else ()),  # the event of a new group names its positions
    )


def _nothing_is_left_out(positions: Positions, state: State, seen: Seen, call: Call) -> bool:
    """Whether the query reads at least all that it would read from its own start, if that is latest or earliest."""
    start, read = call.setup.starting, tuple(tp for tp in state.log.partitions if tp in positions)
    if start == Earliest() and not any(tp in state.log.silent for tp in read):
        first = seen.of(ResolveOffsets(start, read))
        return all(positions[tp] <= first[tp] for tp in read)
    return start == Latest()


def _wished(
    new: Sequence[TopicPartition], known_topics: Collection[str], state: State, seen: Seen, call: Call
) -> Positions:
    """The starting offsets of new topics; earliest for new partitions of topics that the group knows.

    Of logs whose leader does not answer now, `place` finds the beginning later. Any other start has its moment, so it
    waits for all leaders.
    """
    # Starting offsets for unknown partitions are a mistake, unless these partitions have positions.
    added = tuple(tp for tp in new if tp.topic not in known_topics)
    starting = within(call.setup.starting, added) if known_topics else call.setup.starting
    timed = added if starting != Earliest() else ()
    begin = tuple(tp for tp in new if tp not in timed and tp not in state.log.silent)
    earliest = seen.of(ResolveOffsets(Earliest(), begin)) if begin else {}
    return {**earliest, **(seen.of(ResolveOffsets(starting, timed)) if timed else {})}


def place(state: State, seen: Seen, call: Call) -> State:
    """Create positions of partitions that this life sees first: the stable offset in Redis, a proof, or earliest.

    After a loss of state it sees all partitions first: an older copy of the group may not know them. The group may have
    forgotten a topic while this member slept (rule: topic-expiry). A partition that this process has read, and whose
    position nothing proves for all hashes, is a loss: the state then holds the verdict, and the caller begins again.
    A partition without a proof has no position until its leader answers.
    """
    owning, nonce, known = state.owning, state.life.nonce, state.owning.acquired.topic_ids
    waits, unplaced = owning.unplaced if owning.placed_at == nonce else frozenset(), frozenset[TopicPartition]()
    placed = owning.placed if owning.placed_at == nonce else frozenset()
    placed = frozenset(tp for tp in placed if not known or tp.topic in known)
    in_kafka = [TopicPartition(name, p) for name, of in sorted(state.log.topics.items()) for p in range(of.count)]
    grown = {tp.topic for tp in in_kafka if tp not in placed}
    if grown:
        mine = [tp for tp in state.log.partitions if tp.topic in grown]
        new = tuple(tp for tp in mine if tp not in placed) or tuple(mine)
        if waits == {*new} and not seen.of(ReadLogEnds(new)):
            return state
        stable = seen.of(ReadStable(tuple(sorted({tp.topic for tp in new}))))
        unknown = [tp for tp in new if tp not in stable]
        proofs = proofs_of(state, unknown, seen, call) if unknown else Proofs({})
        if proofs.missing and call.setup.settings.on_state_loss == "fail":
            lost = Lost(f"Redis does not know the position of {proofs.missing[0]}, which this query has read")
            return replace(state, life=replace(state.life, verdict=lost))
        first = {**proofs.positions, **stable}
        if others := tuple(tp for tp in new if tp not in first):
            first |= {tp: b.beginning for tp, b in (seen.of(ReadLogEnds(others)) or {}).items()}
        unplaced = frozenset(new) - first.keys()
        if unplaced != frozenset(new):
            seen.done(creation(state, {tp: first[tp] for tp in new if tp in first}, call))
        _assert_more(state, proofs, seen)
    placed |= frozenset(in_kafka) - unplaced
    return replace(state, owning=replace(owning, placed=placed, placed_at=nonce, unplaced=unplaced))


def prove(state: State, seen: Seen, call: Call) -> Decision:
    """While the group recovers, create positions that this process proves and Redis does not know, once.

    A new query of such a topic would begin at its starting offsets. It waits (rule: recovering-session).
    """
    life, evidence = state.life, state.evidence
    topics = tuple(sorted({tp.topic for tp in evidence.known.lanes} & state.log.topics.keys()))
    if not isinstance(life.verdict, Recovering) or life.asserted_at == life.nonce or not topics:
        return Decision(state)
    stable = seen.of(ReadStable(topics))
    unknown = tuple(tp for tp in evidence.known.lanes if tp.topic in topics and tp not in stable)
    proofs = proofs_of(state, unknown, seen, call) if unknown else Proofs({})
    return Decision(state, (creation(state, proofs.positions, call),) if proofs.positions else ())


def _assert_more(state: State, proofs: Proofs, seen: Seen) -> None:
    """A position is the lowest of a partition; the facts of its other hashes may be higher."""
    if facts := {tp: of_tp for tp, of_tp in state.evidence.facts.items() if tp in proofs.positions}:
        seen.done(Claim(state.evidence.known, facts))


def creation(state: State, positions: Positions, call: Call, *, create: bool = False) -> Request[str]:
    """Set positions if absent; a late call must not create the group after a loss (rule: create-once)."""
    founding = "" if create else state.life.founding
    grace_ms, joined = call.setup.settings.growth_grace_ms, call.setup.cutting.joined
    return CreatePositions(state.log.topics, positions, grace_ms, create=create, founding=founding, joined=joined)
