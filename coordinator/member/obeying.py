"""A member obeys policies: it refuses demands, rejects forbidden ranges, and reads partitions in order. Pure.

demand             a query that cannot do without parts of partitions ends where policies forbid these (codes 88, 89)
forbidden range    assigned by another member: rejected, with an event and a log line (code 90)
partition order    one owner, one lane, one task, one end (rule: partition-order)
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from coordinator.assignment.assignment_text import Ranges, event_text
from coordinator.assignment.policies import GRANT, UNREADABLE, UNREADABLE_TOPIC, Policy, refuse_demand
from coordinator.assignment.rebalance import union
from coordinator.errors import ConsumerRangeFetchNotAcceptedError
from coordinator.errors.quoting import VALUE, bounded
from coordinator.member.decision import RETRY_MS, Call, Decision, LookAgain, Return, Seen
from coordinator.member.kinds import Request
from coordinator.member.requests import CopyPolicies, Event, LogLine, ReadClusterPolicies, ReadPolicy
from coordinator.member.state import ClusterPolicies, State
from coordinator.plan.planning import OwnedRange, OwnedRanges
from coordinator.redis.replies import Look
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import OffsetByPartition, TopicPartition

READ_MS = 5_000
_CONSEQUENCE = "The policies that Redis has hold. Those of the cluster are not known where Redis lacks them"
_STRICT = "The last known policies hold. Without any, members share no partition, and read each in its log's order"


def check_start(state: State, seen: Seen, call: Call) -> Decision:
    """Refuse a start that demands parts of partitions where policies forbid them (codes 88, 89)."""
    settings = call.setup.settings
    if settings.demanding or settings.per_key or _pinned_parts(call):
        policy = seen.of(ReadPolicy()).with_cluster(*seen.of(ReadClusterPolicies()))
        refuse_demands(policy, state.log.topics, call, starts=True)
    return Decision(state, (), Return(None))


def copy_cluster_policies(state: State, seen: Seen, call: Call) -> Decision:
    """Before a look: the group has the policies of the Kafka cluster, at most 5 s old (rule: cluster-policies).

    A warning names the missing right once, not at each read. Without it, what Redis has stays, unless the query demands
    the policies.
    """
    before, effects = state.cluster_policies, tuple[Request[Any], ...]()
    found, read_ms = before.found, before.read_ms
    if found is None or read_ms is None or seen.now_ms - read_ms >= READ_MS:
        found, read_ms = seen.of(ReadClusterPolicies()), seen.now_ms
    missing, strict = found[0] == UNREADABLE, found[1].unknown
    copies = strict or not missing
    if copies and (found != before.found or before.copied_at != state.life.nonce):
        effects = (CopyPolicies(*found),)
    if missing and found != before.found:
        follows = _STRICT if strict else _CONSEQUENCE
        effects += (LogLine(f"group {call.setup.settings.group}: {UNREADABLE_TOPIC}. {follows}. Remedy: {GRANT}"),)
    return Decision(replace(state, cluster_policies=ClusterPolicies(read_ms, found, state.life.nonce)), effects)


def refuse_demands(policy: Policy, topics: Collection[str], call: Call, *, starts: bool = False) -> None:
    """Raise 88 or 89 for a query that cannot follow the policies; also for one that demands parts, where it `starts`.

    A running query that demands parts follows the assignment, and gets whole partitions.
    """
    settings, parts = call.setup.settings, _pinned_parts(call)
    if parts:
        demand, way = "the option assign names parts of partitions", "remove the key ranges of the option assign"
        refuse_demand(policy, settings.group, parts, demand, way)
    elif settings.ordering == "none":
        refuse_demand(policy, settings.group, topics, "ordering=none is set", "remove the option ordering")
    elif settings.demanding and starts:
        demand, way = "sharing=required is set", "remove the option sharing"
        refuse_demand(policy, settings.group, topics, demand, way)
    if settings.per_key:
        demand, way = "the function is called key by key", "pass it to map_batches"
        refuse_demand(policy.of_topics, settings.group, topics, demand, way)


def _pinned_parts(call: Call) -> set[str]:
    return {tp.topic for tp, hashes in call.setup.pinned.items() if union(hashes) != (WHOLE,)}


def obeyed(policy: Policy, call: Call) -> Policy:
    """The policies of the group, and those that its ordering implies (rule: one-ordering)."""
    return replace(policy, ordered=call.setup.settings.ordering == "partition")


def in_order(state: State, policy: Policy) -> frozenset[str]:
    """The topics that this member reads in partition order."""
    return frozenset(t for t in state.log.topics if policy.in_order(t))


def rejected(state: State, look: Look, call: Call) -> Decision | None:
    """If the assignment in force has a range that this member may not read: join again, which makes another one due.

    An assignment that is out of date may be of other policies, and is no mistake.
    """
    forbidden = _forbidden(look, call) if look.protocol and not call.setup.pinned else {}
    if not forbidden:
        return None
    error = ConsumerRangeFetchNotAcceptedError(
        f"generation {look.generation} assigns {bounded(event_text(forbidden), VALUE)} to member {state.life.member}, "
        "which accepts whole partitions only",
        "update the members of the group to one version of coop-kafka",
    )
    effects = Event("rejected", error.headline, forbidden), LogLine(f"group {call.setup.settings.group}: {error}")
    return Decision(
        replace(state, life=state.life.rejoining()),
        effects,
        LookAgain(RETRY_MS, "the assignment has ranges that this member may not read"),
    )


def _forbidden(look: Look, call: Call) -> Ranges:
    sharing = call.setup.settings.sharing
    parts = {tp: hashes for tp, hashes in look.mine.items() if hashes and union(hashes) != (WHOLE,)}
    return {tp: hashes for tp, hashes in parts.items() if not (sharing and look.policy.may_share(tp.topic))}


def _whole(parts: Collection[OwnedRange]) -> bool:
    return union(part.hashes for part in parts) == (WHOLE,)


def one_end(
    state: State, work: OwnedRanges, ends: OffsetByPartition, seen: Seen, call: Call
) -> tuple[State, OwnedRanges]:
    """In partition order: all ranges of a partition are read up to one offset, and only by the owner of them all."""
    topics = in_order(state, state.owning.policy)
    if not topics:
        return state, work

    def limited(tp: TopicPartition, parts: tuple[OwnedRange, ...]) -> tuple[OwnedRange, ...]:
        if tp.topic not in topics or not parts:
            return parts
        end = min(p.reach(ends[tp]) for p in parts) if _whole(parts) else 0
        return tuple(p._replace(ceiling=max(p.position, min(end, p.reach(ends[tp])))) for p in parts)

    return state, {tp: limited(tp, parts) for tp, parts in work.items()}
