"""The JSON of the verbs that only look, for docs/command.md."""

from coordinator.tools.audit.report import Audit
from coordinator.tools.fields import Field, fields_of
from coordinator.tools.operations.gaps import PartitionGaps
from coordinator.tools.operations.group_health import Health
from coordinator.tools.operations.group_list import GroupLine
from coordinator.tools.operations.key_owner import KeyOwner
from coordinator.tools.operations.top_view import LaneAtWork, TopView
from coordinator.tools.operations.views import GroupView
from coordinator.tools.operations.waiting_views import EventView, FailingCounts
from pages.json_fields import KEYS, STRIKES, Document, each

LOOKS = (
    Document("list", "The groups of this Redis.", each("groups", GroupLine)),
    Document(
        "describe",
        "The group. With replica sets, `replica_sets` has the same fields for each of the other sets.",
        (
            *fields_of(GroupView),
            *each("limited", LaneAtWork),
            *fields_of(FailingCounts),
            Field("replica_sets", "list of object", "The other replica sets; absent without them."),
        ),
    ),
    Document("gaps", "Every partition, also without gaps.", each("partitions", PartitionGaps)),
    Document("owner", "One object for each partition that may hold the key.", each("owners", KeyOwner)),
    Document(
        "events",
        "One object on each line, for each [event](reference.md#events). With `--follow`, lines keep coming.",
        (*fields_of(EventView),),
    ),
    Document("top", "Members and lanes at work. The most interesting lanes come first.", (*fields_of(TopView),)),
    Document("check", "The verdict. It is printed with every exit code but 2.", (*fields_of(Health),)),
    Document("stuck", "Key ranges over which members died or hung, and keys whose record failed.", (*STRIKES, *KEYS)),
    Document(
        "audit",
        "The verdict, with exit code 0 or 3; see [audit a sink](guarantees.md#audit-a-sink).",
        (Field("good", "boolean", "Whether no partition has a fault."), *fields_of(Audit)),
    ),
)
