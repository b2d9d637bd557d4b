"""The JSON documents of `--json` that are more than a view or a list of views, with the words of the tables. Pure.

Times end with their unit: `at_ms`, `lag_s`. Hashes, ranges of offsets and lane epochs are text, as in tables.
docs/command.md lists each field. Add fields freely; a field never changes its name, its type or its unit.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from coordinator.plan.poison import Strike
from coordinator.progress.failing import FailingRecord, deferred_and_parked
from coordinator.tools.audit.report import Audit
from coordinator.tools.moving.importing import Import
from coordinator.tools.operations.copies import GroupCopy
from coordinator.tools.operations.operations import Executed, Remains, Reset
from coordinator.tools.operations.redrive_view import RedriveView
from coordinator.tools.operations.top_view import LaneAtWork
from coordinator.tools.operations.views import GroupView
from coordinator.tools.operations.waiting_views import FailingCounts, FailingKey, StrikeView

Document = dict[str, object]


def of_group(seen: GroupView, limited: Iterable[LaneAtWork], failing: Sequence[FailingRecord]) -> Document:
    """`describe`, without the replica sets; `limited` are the lanes that a bound limits."""
    members = [asdict(m) | {"fields": typed(m.fields)} for m in seen.members]
    waiting = asdict(FailingCounts(*deferred_and_parked(failing)))
    changed = {"policy": typed(seen.policy), "members": members}
    return asdict(seen) | changed | waiting | {"limited": [*limited]}


def of_sets(groups: Iterable[Document]) -> Document:
    """`describe`: the group, and its replica sets if it has any."""
    first, *others = groups
    return first | ({"replica_sets": others} if others else {})


def of_audit(found: Audit) -> Document:
    """`audit`."""
    return {"good": found.good, **asdict(found)}


def of_stuck(strikes: Iterable[Strike], records: Iterable[FailingRecord]) -> Document:
    """`stuck`; and `release`: what it released."""
    return {"strikes": [*map(StrikeView.of, strikes)], "keys": [*map(FailingKey.of, records)]}


def of_policy(fields: Mapping[str, str], *, executed: bool) -> Document:
    """`policy`; after a dry run, as the policies would be."""
    return {"executed": executed, "policy": typed(fields)}


def of_reset(planned: Reset, done: Executed | None) -> Document:
    """`reset-offsets`; `done` is None after a dry run."""
    moves = [asdict(m) | {"by": m.after - m.before} for m in planned.moves]
    return {"executed": done is not None, "reset": done.epoch if done else None, "partitions": moves}


def of_remains(found: Remains, *, executed: bool) -> Document:
    """`delete`."""
    return {"keys": found.keys, "mirrored": [*map(str, found.mirrored)], "executed": executed}


def of_drain(members: Sequence[str], seconds: float, *, done: bool, executed: bool) -> Document:
    """`drain`."""
    return {"executed": executed, "members": [*members], "seconds": round(seconds, 1), "done": done}


def of_copy(copy: GroupCopy, *, executed: bool) -> Document:
    """`restore`."""
    return {"keys": len(copy.keys), "taken_ms": copy.taken_ms, "executed": executed}


def of_import(planned: Import, *, executed: bool) -> Document:
    """`import`."""
    places = [
        {**p.tp._asdict(), "position": p.position, "above": [str(r) for r in p.above], "clipped": p.clipped}
        for p in planned.places
    ]
    return {"executed": executed, "partitions": places, "without": [*map(str, planned.without)]}


def of_redrive(seen: RedriveView, dead: str, topic: str, *, parked: int, executed: bool) -> Document:
    """`redrive`, from the topic `dead` to `topic`; `parked` are keys that only `release` frees."""
    return {"executed": executed, "from": dead, "to": topic, "parked": parked, **asdict(seen)}


def typed(fields: Mapping[str, str]) -> dict[str, str | bool]:
    """Texts of Redis, for programs: labels stay text, `true` and `false` of policies are booleans."""
    switches = {"true": True, "false": False}
    return {name: text if name.startswith("label.") else switches.get(text, text) for name, text in fields.items()}
