"""The life of a member: its next step after an outage or a refusal of Redis, and its join.

    no answer    wait and try again, until redisMaxOutage             `outage`
    FENCED       another life has joined: the query ends                `fenced`
    LOST         recover proven positions, then join again              `recovery.recover`
    RECOVERING   assert positions once, wait, try again                 `assert_positions`
    BUSY         wait for the other member's lease, unless it grows     `busy`
    FILTER       or is of the same query: then the query ends
    ORDERING
    ALONE
    MISSED       another application read meanwhile: the query ends     `busy`
    HELD         a member reads pinned ranges of this one               `pinned.held`
    REJOIN       assert positions, join again                           `join`

Steps of every call, in this order. Between two calls, the heartbeat thread joins again (`rejoining`). Pure.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from coordinator.assignment.assignment_text import fields_of
from coordinator.assignment.protocols import Protocol
from coordinator.assignment.settings import GroupSettings
from coordinator.assignment.spare import SLOW_PERCENT
from coordinator.errors import (
    FencedMemberError,
    FilterMismatchError,
    GroupBusyError,
    GroupError,
    GroupNotSharedError,
    InvalidOptionError,
    OtherOrderingError,
)
from coordinator.errors.quoting import quoted
from coordinator.member.decision import RETRY_MS, Call, Decision, Fail, LookAgain, Seen
from coordinator.member.kinds import Request
from coordinator.member.requests import Claim, Event, Join, LogLine, ReadMetadata
from coordinator.member.state import State
from coordinator.redis.group_state import BATCH_BUDGET, LONGEST_BATCH, STANDBY
from coordinator.redis.replies import Joining, JoinReply
from coordinator.values import verdicts

FIRST_CONTACT_MS = 5_000
"""The patience with an address that never answered: it is more likely wrong than away."""


def outage(state: State, seen: Seen, call: Call) -> Decision:
    """Wait for a Redis that does not answer; `RedisUnavailableError` when it is away too long (rule: redis-outage)."""
    life, limit = state.life, call.setup.settings.max_outage_ms
    if life.away is None or life.away.waited:
        return Decision(state)
    if not life.reached:
        limit = min(limit, FIRST_CONTACT_MS)
    if seen.now_ms - life.away.since_ms >= limit:
        patience = "redisMaxOutage" if life.reached else "the limit of a first contact"
        cause = life.away.error
        error = type(cause)(f"{cause.what}, for longer than {patience} ({limit} ms)", cause.remedy)
        return Decision(replace(state, life=replace(life, away=None)), (), Fail(error))
    waited = replace(life, away=replace(life.away, waited=True))
    why = f"{life.away.error} It ends once it has needed Redis for {limit} ms"
    return Decision(replace(state, life=waited), (), LookAgain(RETRY_MS, why))


def fenced(state: State, seen: Seen, call: Call) -> Decision:
    """Another life of this member has joined: end the query."""
    if not isinstance(state.life.verdict, verdicts.Fenced):
        return Decision(state)
    member = state.life.member
    by_whom = _by_whom(seen.of(ReadMetadata(member, anyway=True)))
    error = FencedMemberError(
        f"another driver with the same checkpoint has taken over member {member} of group "
        f"{call.setup.settings.group!r}{by_whom}",
        "set a checkpointLocation of its own for each query; this one has lost nothing and can be stopped",
    )
    return Decision(
        _handled(state), (Event("fence", "the member was started again, so its earlier life ends"),), Fail(error)
    )


def _by_whom(metadata: Mapping[str, str] | None) -> str:
    """Host, driver and time of the other life, as far as Redis shows them."""
    if metadata is None:
        return ""
    if not metadata:
        return ", or its entry in Redis was deleted"
    try:
        at = datetime.fromtimestamp(int(metadata["joined_at"]) / 1000, UTC).isoformat(timespec="seconds")
        return f": pid {metadata.get('driver_pid', 'unknown')} on host {metadata['host']}, at {at}"
    except (KeyError, ValueError, OverflowError, OSError):
        return ""


def assert_positions(state: State, seen: Seen, call: Call) -> Decision:
    """The group recovers from a loss: assert known positions once, and wait for its end (rule: recovering-session)."""
    if not isinstance(state.life.verdict, verdicts.Recovering):
        return Decision(state)
    life, effects = state.life, tuple[Request[Any], ...]()
    if life.asserted_at != life.nonce:
        settings, facts = call.setup.settings, state.evidence.facts
        effects = (
            *([Claim(state.evidence.known, facts)] if facts else []),
            LogLine(
                f"group {settings.group} recovers from a loss of state: members prove their positions, and no batch is "
                f"planned for up to sessionTimeout ({settings.session_ms} ms); no action is needed"
            ),
        )
    handled = _handled(replace(state, life=replace(life, asserted_at=life.nonce)))
    why = "the group recovers from a loss of state, for one session at most"
    return Decision(handled, effects, LookAgain(RETRY_MS, why))


def busy(state: State, seen: Seen, call: Call) -> Decision:
    """Another member of this application lives, or one with another filter or ordering.

    Wait for its lease, unless it renews it.

    Spark calls all reads of one query on one thread. So a read of our own query lives as long as this one, and can
    release nothing meanwhile. Two queries have a thread each (rule: one-member-per-application).
    """
    verdict, group = state.life.verdict, call.setup.settings.group
    if isinstance(verdict, verdicts.Missed):
        return Decision(_handled(state), (), Fail(_missed(group)))
    if not isinstance(verdict, verdicts.Busy) or isinstance(verdict, verdicts.Held):
        return Decision(state)
    before, other = state.life.other, (verdict.member, verdict.lease_end_ms)
    theirs = seen.of(ReadMetadata(verdict.member))
    query = call.setup.me.fields.get("query")
    if query and theirs and theirs.get("query") == query and not isinstance(verdict, verdicts.Alone):
        return Decision(_handled(state), (), Fail(_two_reads(group, verdict.member)))
    if before and before[0] == other[0] and other[1] > before[1]:
        return Decision(_handled(state), (), Fail(_in_the_way(verdict, call.setup.settings)))
    waiting = replace(state, life=replace(state.life, other=other))
    wait_ms = min(RETRY_MS, verdict.lease_end_ms - verdict.now_ms + 1)
    return Decision(_handled(waiting), (), LookAgain(wait_ms, f"for the end of the lease of member {other[0]}"))


def _two_reads(group: str, other: str) -> GroupBusyError:
    return GroupBusyError(
        f"two reads of one query cannot be members of one group: member {other} of group {group!r} is a read of this "
        "query too",
        "use a group for each read, by its own load(). A union can use one DataFrame twice instead, which Spark reads "
        "once; both sides of a self-join are two reads",
    )


def _in_the_way(verdict: verdicts.Busy, mine: GroupSettings) -> GroupError:
    """The member renews its lease."""
    it = f"member {verdict.member} of group {mine.group!r}"
    match verdict:
        case verdicts.OtherFilter():
            return FilterMismatchError(
                f"{it} has {_shown(verdict.theirs)}, and this query has {_shown(mine.filter.text)}: all members of a "
                "group need the same filter",
            )
        case verdicts.OtherOrdering():
            return OtherOrderingError(
                f"{it} has ordering={verdict.theirs}, and this query has ordering={mine.ordering}",
                f"set ordering={verdict.theirs}, or use another group; to change the group, stop all its queries first",
            )
        case verdicts.Alone():
            whose = "that query" if verdict.theirs else "this query"
            return GroupNotSharedError(f"{it} and this query cannot read together: {whose} has sharing=never")
    return _two_queries(mine.group, verdict.member)


def _missed(group: str) -> GroupNotSharedError:
    return GroupNotSharedError(
        f"this query reads group {group!r} alone, and another application has read it in between: the state of "
        "stateful operators in its checkpoint lacks those records",
        "start it with a new checkpointLocation; the group keeps its positions",
    )


def _shown(of_filter: str) -> str:
    return f"the filter {quoted(of_filter)}" if of_filter else "no filter"


def _two_queries(group: str, other: str) -> GroupBusyError:
    return GroupBusyError(
        f"this application already has member {other} at work in group {group!r}, as another query or as another read "
        "of this query",
        "for two queries of one application, stop one, or use two groups, or set allowSeveralQueries=true in both; "
        "for two reads of one query, use two groups",
    )


def join(state: State, seen: Seen, call: Call) -> Decision:
    """Join the group, unless this life is in it."""
    life = state.life
    if life.nonce:
        return Decision(state)
    if call.setup.partial and not call.setup.me.fields.get("query"):
        raise InvalidOptionError(
            "option copartition names topics that this load() does not read, and this system does not show which reads "
            "belong to one query",
            "name all topics of copartition in the option subscribe; or run the driver on Linux, with /proc readable",
        )
    *asserting, joins = rejoining(state, call)
    for request in asserting:
        seen.done(request)
    return Decision(joined(state, seen.done(joins)))


def rejoining(state: State, call: Call) -> tuple[Request[Any], ...]:
    """The requests of a join, the last of which is the join itself.

    A member that joins again asserts its positions first: then a recovery has heard it (rule: recovering-session).
    """
    life, facts = state.life, state.evidence.facts
    asserting = (Claim(state.evidence.known, facts),) if life.nonce_before and facts else ()
    return (*asserting, Join(life.nonce_before, joining(state, call)))


def joined(state: State, answer: JoinReply) -> State:
    """The state after a join."""
    life = replace(state.life, nonce=answer.seen.nonce, nonce_before=answer.seen.nonce, seq=answer.seen.seq)
    life = replace(life, founding=answer.seen.founding, joined_at=answer.joined_at)
    life = replace(life, asserted_at=None, lease_end_ms=answer.lease_end_ms, verdict=None, other=None)
    targets = state.pace.targets and (answer.targets or state.pace.targets)
    owning = replace(state.owning, topics=frozenset(state.log.topics))
    return replace(state, life=life, owning=owning, pace=replace(state.pace, targets=targets))


def joining(state: State, call: Call) -> Joining:
    """The report of this member about itself."""
    settings, me = call.setup.settings, call.setup.me
    protocols = tuple(Protocol(a.name, a.version) for a in settings.assignors)
    subscribes = fields_of(frozenset(state.log.topics), settings.capacity, protocols, sharing=settings.sharing)
    slow = {SLOW_PERCENT: str(state.shown.slow_percent)} if state.shown.slow_percent else {}
    times = {LONGEST_BATCH: str(settings.longest_ms), BATCH_BUDGET: str(settings.batch_budget_ms)}
    fields = {**me.fields, **subscribes, **settings.commit_fields, **times, **slow}
    targets, pinned = state.pace.targets or {}, call.setup.pinned
    topics = tuple(sorted(state.log.topics)) if call.setup.cutting.joined else ()
    role = (state.life.role or STANDBY) if settings.standby else ""
    me = replace(me, filter=settings.filter.text, ordering=settings.ordering, topics=topics, role=role)
    # Two reads of one query that join topics keep their state in Spark, and ranges that move leave it behind.
    partial = call.setup.partial and (settings.alone or not settings.demanding)
    alone = me.fields.get("query", "") if partial else state.life.member if settings.alone else ""
    returns = settings.alone and not partial and bool(call.offset.member)
    me = replace(me, joined_at=state.life.joined_at, alone=alone, returns=returns)
    return replace(me, fields=fields, targets=targets, pinned=pinned)


def _handled(state: State) -> State:
    return replace(state, life=replace(state.life, verdict=None))
