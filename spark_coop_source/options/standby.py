"""The rules between `standby` and other options, and triggers. Does no IO."""

from coordinator.errors import ConflictingOptionsError
from coordinator.values.subscription import Assigned
from spark_coop_source.options import table
from spark_coop_source.options.values import Given

_REMEDIES = {
    "assign names key ranges": "remove standby: a second query with the same key ranges in assign is a spare already",
    "ordering=none is set": "remove standby: after the lease of a lost member, the other members read its slices",
    "copartition is set": "remove standby: the reads of one query would take over one by one",
    "redundancy is above 1": "remove redundancy, and give each replica set a group of its own, with a standby",
}


def check(given: Given, group: str | None, *, streaming: bool) -> None:
    """Refuse a standby of a batch or without a group, and beside options that give it ranges in another way."""
    if not given.need(table.STANDBY):
        return
    if not streaming:
        raise ConflictingOptionsError(
            "standby=true is set, but a batch (spark.read) reads everything once and waits for no member",
            "remove standby",
        )
    if group is None:
        raise ConflictingOptionsError(
            "standby=true is set, but a stream without a group has no other member to take over from",
            "remove standby, or add the options group and redis.url",
        )
    assigned = given.get(table.ASSIGN)
    refused = {
        "assign names key ranges": isinstance(assigned, Assigned) and assigned.pinned,
        "ordering=none is set": given.need(table.ORDERING) == "none",
        "copartition is set": table.COPARTITION in given,
        "redundancy is above 1": given.need(table.REDUNDANCY) > 1,
    }
    for what, refuses in refused.items():
        if refuses:
            raise ConflictingOptionsError(f"standby=true is set, but {what}", _REMEDIES[what])


def refuse_run(trigger: str) -> None:
    """Refuse a run that ends by itself: a standby has nothing to read until another member is lost."""
    raise ConflictingOptionsError(
        f"standby=true is set, but the query runs with {trigger}, which ends when everything is read",
        "remove standby, or use another trigger",
    )
