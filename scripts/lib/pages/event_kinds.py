"""Every kind of event that a group's stream `coop:v1:{group}:events` can hold, for docs/reference.md.

Scripts and Python name a kind by its text. A test compares this table with every kind that the code writes.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EventKind:
    """One kind of event."""

    kind: str
    meaning: str
    action: str = "nothing"  # what the operator who reads it does


EVENT_KINDS = (
    EventKind("assigned", "A member acquired key ranges, at a new lane epoch."),
    EventKind(
        "assignor",
        "An assignor failed, or its result cannot be used. The group uses `grouped` with whole partitions.",
        "fix the assignor that the event names; see [assignors](applications.md#when-it-fails)",
    ),
    EventKind(
        "cap",
        "A partition holds `maxIndividualCommits`. Members read only its gaps and its lane furthest behind.",
        "commit the missing offsets above the stable offset; `coop-kafka gaps` shows them",
    ),
    EventKind(
        "clock",
        "The clock of Redis was ahead when a lease, a batch or a recovery was timed. The script shortened that time.",
        "check the time service on the Redis host; the group needs nothing",
    ),
    EventKind(
        "continue",
        "A query without a checkpoint began in a group that has positions, and reads on from these.",
        "nothing, if a query was added; to read all records again, as for a full refresh, stop the queries of the "
        "group and use `coop-kafka reset-offsets GROUP --all-topics --to-earliest`",
    ),
    EventKind(
        "deferred",
        "The user's function failed on records of keys. Each key waits at its record, and is tried again later.",
        "look at the error: `coop-kafka stuck` shows it. The other keys continue",
    ),
    EventKind("drain", "An operator drained a member: others get its ranges, and it is a standby."),
    EventKind(
        "expire",
        "A member's lease ended, or its batch takes longer than `longestBatch`. Others may acquire its ranges.",
        "look at the member's driver: it died, hangs, or lost its connection to Redis",
    ),
    EventKind(
        "failing",
        "A partition has `maxDeferredKeys` failing keys. Members read only these until there are fewer.",
        "fix what the function needs, or release quarantined keys; `coop-kafka stuck` shows them",
    ),
    EventKind(
        "fence",
        "A script refused a late call: of an earlier owner of the ranges, or of an earlier run of the member. A "
        "member that starts again takes over the ranges of its earlier run.",
        "nothing, if the member was started again, its ranges moved or positions were reset; otherwise look for a "
        "second query with the same checkpoint",
    ),
    EventKind(
        "forget",
        "Redis deleted the positions of a topic: no member has subscribed to it for `offsetsRetention`.",
        "nothing, if the topic is not read any more; a query that reads it again begins at its starting offsets",
    ),
    EventKind("found", "The group received its first positions. The event names those of ten partitions."),
    EventKind(
        "growth",
        "A topic has more partitions than before. The event names the old and the new number, and whether "
        "keys keep their order ([added partitions](ordering.md#when-you-add-partitions)). Or new partitions wait for "
        "those of other topics of `copartition` ([joins](stateful.md#what-it-needs)).",
        "nothing, if the order is kept; otherwise expect the named keys out of order around the change. Add partitions "
        "to the other topics of `copartition`",
    ),
    EventKind("join", "A member joined. The event names its application and its incarnation (one run of the member)."),
    EventKind(
        "leave",
        "A member left. Ranges of an unfinished batch wait some seconds, or for the end of its lease if the event names"
        " tasks that may still read.",
    ),
    EventKind(
        "loss",
        "Records were gone before a member read them, and `failOnDataLoss=false` lets the query continue.",
        "make the topic's retention longer than the lag",
    ),
    EventKind(
        "lost",
        "Another member or a reset took key ranges away from the member that the event names.",
        "look at the event next to it: `expire`, `recover`, `reset` or `loss` is the cause",
    ),
    EventKind(
        "mend",
        "A part of the group was missing in Redis, or individual commits were damaged. The call that found it wrote it "
        "again, deleted it, or no longer counts it.",
        "find out who deletes or changes keys of the group; records may repeat, none is lost",
    ),
    EventKind(
        "ordering", "A member changed the ordering of the group. Every lane epoch of the former ordering is void."
    ),
    EventKind(
        "overruled",
        "Another program, such as `kafka-consumer-groups --reset-offsets`, committed offsets to Kafka's group of that "
        "name. They moved nothing, and the mirror replaced them.",
        "to move positions, stop the queries and use `coop-kafka reset-offsets`",
    ),
    EventKind(
        "parked",
        "A record hung again when it was tested alone, or the function failed on a record of a key "
        "(`then=park`): the lane or the key is quarantined until it is released.",
        "look at the record (`coop-kafka stuck` shows offsets), fix the job, then `coop-kafka release`",
    ),
    EventKind("plan", "A member made an assignment: its generation and its assignor."),
    EventKind("policy", "An operator changed a policy."),
    EventKind(
        "recover",
        "Redis lost state or was restarted. Members prove their positions, for one session at most.",
        "nothing, if Redis was restarted; otherwise find out who deleted keys of the group",
    ),
    EventKind("redrive", "An operator sent dead letters back to their topic."),
    EventKind(
        "rejected",
        "A member rejected a part of a partition that policies forbid (code 90). Another assignment is due.",
        "update all members to one version of coop-kafka",
    ),
    EventKind(
        "release",
        "Suspects, quarantined lanes or failing records were released: by an operator, or because the topic was "
        "created again.",
    ),
    EventKind("reset", "An operator moved positions. The event names old and new offsets."),
    EventKind("restore", "An operator loaded a copy of the group."),
    EventKind("revoked", "A member gave up key ranges in order."),
    EventKind(
        "skipped",
        "The sink completed a batch without reading it. The member committed nothing of it.",
        "set a new output for the query; see [SINK_SKIPPED_BATCH](#configuration)",
    ),
    EventKind(
        "strike",
        "A member died or hung while its tasks read the lane that the event names, which is now suspect.",
        "nothing yet: the lane is tested alone, in a task of its own. `coop-kafka stuck` shows it",
    ),
    EventKind(
        "takeover",
        "Too few members worked, so the standby that the event names works from now on.",
        "look at the `expire` or `leave` event before it; start the lost query again, with `standby=true`",
    ),
    EventKind(
        "unread",
        "A pinned member joined, and no working member names the hashes that the event lists.",
        "nothing, while its companions start; otherwise start a query that names these hashes",
    ),
)
