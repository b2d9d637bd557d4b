"""Errors of membership: who may join a group, and who still belongs to it."""

from coordinator.errors.base import CoopKafkaError


class GroupError(CoopKafkaError):
    """The group does not allow this member or this operation."""

    name = "GROUP_ERROR"


class UnknownGroupError(GroupError):
    """This Redis has no such group, or the group has no such member."""

    name = "UNKNOWN_GROUP"
    usual_remedy = (
        "look at the names with coop-kafka list, and at the database number of the Redis url;"
        " a new query creates its group when it first reads"
    )


class UnknownStrikeError(GroupError):
    """The group has no suspect and no quarantined key or lane in that place."""

    name = "UNKNOWN_STRIKE"
    usual_remedy = "look at what is stuck with coop-kafka stuck GROUP"


class GroupExistsError(GroupError):
    """Redis has a group of that name, and the operation creates one."""

    name = "GROUP_EXISTS"
    usual_remedy = "pass another name, or delete the group with coop-kafka delete"


class GroupTypeError(GroupError):
    """Kafka has a share group or a streams group of that name. It cannot hold the stable offsets of this group."""

    name = "GROUP_TYPE"
    usual_remedy = "use another name for the group, also of an import: coop-kafka import NEW --from share-group:OLD"


class GroupBusyError(GroupError):
    """An active member, or another operator, prevents the operation."""

    name = "GROUP_BUSY"
    usual_remedy = (
        "for an operation, stop all queries of the group and wait sessionTimeout; for a query, set a group of its "
        "own for each read and each query, or set allowSeveralQueries=true in both queries"
    )


class FilterMismatchError(GroupError):
    """An active member of the group has other filter options, so the group would drop records that this query wants."""

    name = "FILTER_MISMATCH"
    usual_remedy = (
        "stop the members that have the other filter, then start this query; or set the filter options of those "
        "members; or use a group of its own for each filter"
    )


class OtherOrderingError(GroupError):
    """The query and its group have different orderings, and other members of the group are active."""

    name = "OTHER_ORDERING"
    usual_remedy = "set the same ordering in all queries of a group, or use another group"


class GroupNotSharedError(GroupError):
    """One application reads the group alone (sharing=never), and another one is in it or has read meanwhile."""

    name = "GROUP_NOT_SHARED"
    usual_remedy = (
        "stop the other query, or use another group; set sharing=never and standby=true in a query that should wait "
        "for the end of the other"
    )


class FencedMemberError(GroupError):
    """Another driver with the same checkpoint replaced this member, or another member owns its key ranges now."""

    name = "FENCED_MEMBER"
    usual_remedy = "set a checkpointLocation of its own for each query, or start the query again"


class GroupRecoveringError(GroupError):
    """Redis lost the group's state. For one session, members prove their positions and nothing else happens."""

    name = "GROUP_RECOVERING"
    retriable = True
    usual_remedy = "wait for sessionTimeout, then make a new CommitApi from a later offset"


class InconsistentGroupProtocolError(GroupError):
    """A member has no assignor in common with the other members, or only one of them is pinned."""

    name = "INCONSISTENT_GROUP_PROTOCOL"
    usual_remedy = "add to the option assignor one that all members name; pin all members or none by the option assign"


class NotCopartitionedError(GroupError):
    """The topics of the option copartition have different numbers of partitions, so their keys do not meet."""

    name = "NOT_COPARTITIONED"
    usual_remedy = (
        "give the topics equal numbers of partitions before they have records that must meet, or remove the option"
        " copartition"
    )


class OverlappingRangesError(GroupError):
    """A pinned member names a part of the ranges of another member that works."""

    name = "OVERLAPPING_RANGES"
    usual_remedy = "in the option assign, name other ranges, or exactly those of that member; or stop that member"


class InvalidAssignmentError(GroupError):
    """The result of an assignor cannot be used: it has a hole, an overlap or a member that it does not fit."""

    name = "INVALID_ASSIGNMENT"
    usual_remedy = "fix the assignor, or choose another one"
