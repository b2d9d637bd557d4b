"""What the page shows of a group, as values for JSON. Pure.

Worst first: partitions by lag, lanes and failing keys as `coop-kafka top` sorts them.
"""

from collections import Counter
from dataclasses import asdict
from typing import Any

from coordinator.progress.failing import FailingRecord
from coordinator.tools.operations.group_look import GroupLook
from coordinator.tools.operations.top_view import top_view
from coordinator.tools.operations.views import PartitionView, worst_first
from coordinator.tools.operations.waiting_views import FailingKey, StrikeView

MOST = 50
"""The most rows of a list. Any partition can be asked for by its name."""

PageFacts = dict[str, Any]


def overview(look: GroupLook) -> PageFacts:
    """A group: its members, its partitions by lag, its slow lanes, and what waits."""
    seen, top, failing = look.view, top_view(look), Counter(record.tp for record in look.failing)
    return {
        "group": look.group,
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
        "topics": dict(sorted(Counter(p.topic for p in seen.partitions).items())),
        "partitions": [_partition(p, failing[p.tp]) for p in worst_first(seen.partitions)[:MOST]],
        "lanes": [asdict(lane) for lane in top.lanes[:MOST]],
        "failing": [asdict(FailingKey.of(r)) for r in sorted(look.failing, key=_most_tried)[:MOST]],
        "failing_keys": {"deferred": top.deferred_keys, "parked": top.parked_keys},
        "parked": [asdict(StrikeView.of(s)) for s in look.strikes if s.parked][:MOST],
    }


def _most_tried(record: FailingRecord) -> tuple[bool, int]:
    return not record.parked, -record.attempts


def _partition(p: PartitionView, failing: int) -> PageFacts:
    known = {"topic": p.topic, "partition": p.partition, "stable": p.stable, "end": p.end, "lag": p.lag, "gaps": p.gaps}
    return known | {"lanes": len(p.lanes), "owners": len(p.owners), "failing": failing}
