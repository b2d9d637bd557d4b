"""Every kind of event that a group's stream `coop:v1:{group}:events` can hold, for docs/reference.md. Pure.

Scripts and Python name a kind by its text. A test compares this table with every kind that the code writes.
"""

from dataclasses import dataclass

NOTHING_TO_DO = "nothing"


@dataclass(frozen=True, slots=True)
class EventKind:
    """One kind of event."""

    kind: str
    meaning: str
    writer: str  # whose call writes it
    action: str  # of the operator who reads it


_MEMBER, _OPERATOR = "a member", "an operator"
_EITHER = f"{_MEMBER} or {_OPERATOR}"
_COMMITTER = "the member, or its Commit API"

EVENT_KINDS = (
    EventKind("assigned", "A member acquired key ranges, at a new lane epoch.", _MEMBER, NOTHING_TO_DO),
    EventKind(
        "assignor",
        "An assignor failed, or its result cannot be used. The group uses `grouped` with whole partitions.",
        "the member that computed the assignment",
        "mend the assignor that the event names; see [assignors.md](assignors.md#when-it-fails)",
    ),
    EventKind(
        "cap",
        "A partition holds `max.individual.commits`. Members read only its gaps and its lane furthest behind.",
        _COMMITTER,
        "commit the missing offsets above the stable offset; `coop-kafka gaps` shows them",
    ),
    EventKind(
        "clock",
        "The clock of Redis was ahead when a lease, a batch or a recovery was timed. The script shortened that time.",
        "the caller that finds it",
        "check the time service on the Redis host; the group needs nothing",
    ),
    EventKind(
        "expire",
        "A member's lease ended, or its batch takes longer than `longest.batch.ms`. Others may acquire its ranges.",
        "the member that assigned next",
        "look at the member's driver: it died, hangs, or lost its connection to Redis",
    ),
    EventKind(
        "fence",
        "A script refused a late call: of an earlier owner of the ranges, or of an earlier life of the member.",
        _COMMITTER,
        "nothing, if the ranges moved; otherwise look for a second query with the same checkpoint",
    ),
    EventKind("found", "The group received its first positions.", _MEMBER, NOTHING_TO_DO),
    EventKind(
        "growth",
        "A topic has more partitions than before. The event names the old and the new number, and whether keys keep "
        "their order.",
        _MEMBER,
        "nothing, if the order is kept; otherwise expect moved keys out of order across the growth",
    ),
    EventKind("join", "A member joined. The event names its application and its incarnation.", _MEMBER, NOTHING_TO_DO),
    EventKind(
        "leave",
        "A member left. Ranges of an unfinished batch wait for the end of its lease.",
        _MEMBER,
        NOTHING_TO_DO,
    ),
    EventKind(
        "loss",
        "Records were gone before a member read them, and `failOnDataLoss=false` lets the query go on.",
        _MEMBER,
        "make the topic's retention longer than the lag",
    ),
    EventKind(
        "lost",
        "Another member or a reset took key ranges away from the member that the event names.",
        _EITHER,
        "look at the event beside it: `expire`, `recover`, `reset` or `loss` is the cause",
    ),
    EventKind(
        "mend",
        "A part of the group was missing in Redis. A member wrote it again, or no longer counts it.",
        _MEMBER,
        "find out who deletes or changes keys of the group; records may repeat, none is lost",
    ),
    EventKind(
        "parked",
        "A record hung again when its lane was tried alone. No member reads the lane until it is released.",
        _MEMBER,
        "look at the record (`coop-kafka parked` shows its offset), mend the job, then `coop-kafka release`",
    ),
    EventKind("plan", "A member made an assignment: its generation and its assignor.", _MEMBER, NOTHING_TO_DO),
    EventKind("policy", "An operator changed a policy.", _OPERATOR, NOTHING_TO_DO),
    EventKind(
        "recover",
        "Redis lost state or was restarted. For one session, members prove their positions.",
        _MEMBER,
        "nothing, if Redis was restarted; otherwise find out who deleted keys of the group",
    ),
    EventKind(
        "release",
        "Strikes were taken back: by an operator, or because the topic was created again.",
        _EITHER,
        NOTHING_TO_DO,
    ),
    EventKind("reset", "An operator moved positions. The event names old and new offsets.", _OPERATOR, NOTHING_TO_DO),
    EventKind("restore", "An operator loaded a copy of the group.", _OPERATOR, NOTHING_TO_DO),
    EventKind("revoked", "A member released key ranges in order.", _MEMBER, NOTHING_TO_DO),
    EventKind(
        "skipped",
        "The sink completed a batch without reading it. The member committed nothing of it.",
        _MEMBER,
        "give the query an output of its own; see [SINK_SKIPPED_BATCH](#configuration)",
    ),
    EventKind(
        "strike",
        "A member died or hung while its tasks read the lane that the event names.",
        _MEMBER,
        "nothing yet: the lane is tried alone. `coop-kafka parked` shows it",
    ),
)
