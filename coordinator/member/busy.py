"""Which error a member gets that may not join beside another member: pure (rule: one-member-per-application).

Spark calls the reads of one query one after the other, on one thread. While a read waits for ranges of the other read,
Spark cannot call the other, which would release them. Two queries have a thread each, and may wait for one another.
"""

from collections.abc import Mapping

from coordinator.errors import GroupBusyError


def same_query(ours: Mapping[str, str], theirs: Mapping[str, str]) -> bool:
    """Whether two members, by what they report of themselves, are reads of one query of Spark."""
    return bool(ours.get("query")) and ours.get("query") == theirs.get("query")


def two_reads(group: str, other: str) -> GroupBusyError:
    """The error of a member whose query has the other member too."""
    return GroupBusyError(
        f"two reads of one query cannot be members of one group: member {other} of group {group!r} is a read of this "
        "query too",
        "use a group for each read, by its own load(). A union can use one DataFrame twice instead, which Spark reads "
        "once; both sides of a self-join are two reads",
    )


def two_queries(group: str, other: str) -> GroupBusyError:
    """The error of a member whose application has the other member too, maybe in the same query."""
    return GroupBusyError(
        f"this application already has member {other} at work in group {group!r}, as another query or as another read "
        "of this query",
        "for two queries of one application, stop one, or use two groups, or set allow.several.queries=true in both; "
        "for two reads of one query, use two groups",
    )
