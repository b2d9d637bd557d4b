"""The rules between `redundancy` and other options. Does no IO."""

from coordinator.assignment.replica_sets import names
from coordinator.errors import ConflictingOptionsError, InvalidOptionError
from coordinator.errors.quoting import bounded
from coordinator.values.identifiers import GROUP_NAME_MAX
from coordinator.values.subscription import Assigned, Subscription


def check(redundancy: int, group: str | None, subscription: Subscription, *, joined: bool) -> None:
    """Refuse replica sets without a group, of a group with too long a name, of joined topics, and of pinned ranges."""
    if redundancy == 1:
        return
    if group is None:
        raise ConflictingOptionsError(
            f"redundancy={redundancy} is set, but only a group has replica sets",
            "remove redundancy, or add the options group and redis.url",
        )
    if joined:
        raise ConflictingOptionsError(
            f"redundancy={redundancy} and copartition are both set, but two reads of one query may join different sets",
            "remove redundancy, and give each replica set a group of its own",
        )
    longest = max(names(group, redundancy), key=len)
    if len(longest) > GROUP_NAME_MAX:
        raise InvalidOptionError(
            f"the last replica set of group {bounded(group)} would have a name of {len(longest)} characters, more than "
            f"{GROUP_NAME_MAX}",
            "use a shorter name for the group",
        )
    if isinstance(subscription, Assigned) and subscription.pinned:
        raise ConflictingOptionsError(
            f"redundancy={redundancy} is set, but the option assign names key ranges, which a member of any set needs",
            "remove redundancy, and give each replica set a group of its own; or remove the key ranges of assign",
        )
