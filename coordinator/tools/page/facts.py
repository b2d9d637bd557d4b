"""What the page shows of a group, as values for JSON. Pure.

Worst first: partitions by lag, lanes and failing keys as `coop-kafka top` sorts them.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from coordinator.progress.failing import FailingRecord
from coordinator.redis.group_state import GroupEvent
from coordinator.tools.operations.key_owner import KeyOwner
from coordinator.tools.operations.views import GroupView, PartitionView, view
from coordinator.tools.operations.waiting_views import FailingKey, StrikeView
from coordinator.tools.page.look import PageLook
from coordinator.values.subscription import TopicPartition

MOST = 50
"""The most rows of a list. Any partition can be asked for by its name."""

PageFacts = dict[str, Any]


def overview(group: str, look: PageLook) -> PageFacts:
    """A group: its members, its partitions by lag, its slow lanes, and what waits."""
    seen, top = view(group, look.state), look.top
    return {
        "group": group,
        "state": seen.state,
        "generation": seen.generation,
        "recovering_ms": seen.recovering_ms,
        "now_ms": look.state.now_ms,
        "lag": top.lag,
        "end_age_s": top.end_age_s,
        "trouble": look.trouble,
        "members": [
            asdict(at_work) | {"host": m.fields.get("host", ""), "lease_left_ms": m.lease_left_ms}
            for m, at_work in zip(seen.members, top.members, strict=True)
        ],
        "topics": {t: sum(p.topic == t for p in seen.partitions) for t in sorted({p.topic for p in seen.partitions})},
        "partitions": _partitions(seen, Counter(record.tp for record in look.failing)),
        "lanes": [asdict(lane) for lane in top.lanes[:MOST]],
        "failing": [asdict(FailingKey.of(r)) for r in sorted(look.failing, key=_most_tried)[:MOST]],
        "failing_keys": {"deferred": top.deferred_keys, "parked": top.parked_keys},
        "parked": [asdict(StrikeView.of(s)) for s in look.strikes if s.parked][:MOST],
    }


def _most_tried(record: FailingRecord) -> tuple[bool, int]:
    return not record.parked, -record.attempts


def _partitions(seen: GroupView, failing: Mapping[TopicPartition, int]) -> list[PageFacts]:
    worst = sorted(seen.partitions, key=lambda p: (-(p.lag or 0), p.topic, p.partition))
    return [_partition(p, failing) for p in worst[:MOST]]


def _partition(p: PartitionView, failing: Mapping[TopicPartition, int]) -> PageFacts:
    owners = {lane.member for lane in p.lanes if lane.member}
    known = {"topic": p.topic, "partition": p.partition, "stable": p.stable, "end": p.end, "lag": p.lag, "gaps": p.gaps}
    counts = {
        "lanes": len(p.lanes),
        "owners": len(owners),
        "failing": failing.get(TopicPartition(p.topic, p.partition), 0),
    }
    return known | counts


def written_event(e: GroupEvent) -> PageFacts:
    """An event."""
    return {**asdict(e), "at_ms": e.at_ms}


def owner(found: KeyOwner) -> PageFacts:
    """The owner of a key in one partition."""
    return asdict(found)
