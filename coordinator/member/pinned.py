"""A pinned member waits for its ranges: another working member may read them. Pure.

    the same ranges      wait: this member is a hot spare
    a part of them       a configuration mistake: the query ends, once the other's lease grows
    members assigned     the same, and where this member is assigned and the others are pinned

A lease that does not grow is of a dead member: wait for its end (rule: one-claim-per-hash).
"""

from dataclasses import replace

from coordinator.assignment.assignment_text import Ranges, event_text, ranges_of
from coordinator.assignment.rebalance import common
from coordinator.errors import CoopKafkaError, InconsistentGroupProtocolError, OverlappingRangesError
from coordinator.errors.quoting import VALUE, bounded
from coordinator.member.decision import LOOK_MS, RETRY_MS, Call, Decision, Fail, LookAgain, Seen
from coordinator.member.requests import LogLine, ReadMetadata
from coordinator.member.state import State
from coordinator.redis.group_state import PINNED
from coordinator.values import verdicts


def held(state: State, seen: Seen, call: Call) -> Decision:
    """A working member is in the way: wait for the end of its lease; see the module."""
    verdict, before, mine = state.life.verdict, state.life.other, call.setup.pinned
    if not isinstance(verdict, verdicts.Held):
        return Decision(state)
    other, its_end = verdict.member, verdict.lease_end_ms
    report = seen.of(ReadMetadata(other))
    life = replace(state.life, verdict=None, other=(other, its_end))
    if not report:  # it has left since
        return Decision(replace(state, life=life), (), LookAgain(RETRY_MS))
    group, theirs = call.setup.settings.group, ranges_of(report.get(PINNED, ""))
    again = before is not None and before[0] == other
    if before is not None and again and before[1] < its_end and mine != theirs:
        return Decision(replace(state, life=life), (), Fail(_refusal(group, other, mine, theirs)))
    lines = () if again else (LogLine(_waits(group, other, spare=mine == theirs)),)
    often_ms = LOOK_MS if mine == theirs else RETRY_MS  # a spare may wait for ever
    wait_ms = max(1, min(often_ms, its_end - verdict.now_ms + 1))
    return Decision(replace(state, life=life), lines, LookAgain(wait_ms, f"member {other} reads the same ranges"))


def _waits(group: str, other: str, *, spare: bool) -> str:
    if spare:
        return f"group {group}: member {other} reads the same ranges; this query is its spare, and waits"
    return f"group {group}: member {other} is in the way of this query, which waits for the end of its lease"


def _refusal(group: str, other: str, mine: Ranges, theirs: Ranges) -> CoopKafkaError:
    if mine and theirs:
        return OverlappingRangesError(
            f"the option assign names hashes that member {other} of group {group!r} reads: "
            f"{bounded(event_text(common(mine, theirs)), VALUE)}",
            f"assign other ranges; or exactly the ranges of {other}, to be its spare; or stop {other}",
        )
    others, this = ("pinned", "not") if theirs else ("assigned its ranges by the group", "pinned")
    return InconsistentGroupProtocolError(
        f"member {other} of group {group!r} is {others}, and this query is {this}: a group has members of one kind",
        "for pinned members, name key ranges in the option assign of every query; for others, in none; or use another "
        f"group; or stop {other} and the other members first",
    )
