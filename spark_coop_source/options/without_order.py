"""The rules between `ordering=none` and other options. Does no IO."""

from coordinator.errors import ConflictingOptionsError, InvalidOptionError
from coordinator.values.subscription import Assigned
from spark_coop_source.arrow_output.schema import ACKNOWLEDGEMENT
from spark_coop_source.options import table
from spark_coop_source.options.values import Given, Option

_OF_KEY_RANGES: tuple[Option[object], ...] = (
    table.ASSIGNOR, table.COPARTITION, table.CAPACITY, table.LISTENER, table.SHARING, table.LANES, table.MAX_LANE_LEAD,
    table.GROWTH_GRACE, table.MAX_RANGES, table.MAX_INDIVIDUAL_COMMITS, table.REPLAY_ACKNOWLEDGED,
)  # fmt: skip
"""Options of key ranges, lanes and individual commits: a group without order has none of them."""


def check(given: Given, group: str | None, ordering: str, gap_wait_ms: int | None, heartbeat_ms: int) -> None:
    """Refuse options of a stream that do not fit its ordering."""
    if ordering == "none":
        _check_without_order(given, group, gap_wait_ms, heartbeat_ms)
    elif gap_wait_ms is not None:
        raise ConflictingOptionsError(
            "gap.max.wait.ms is set, but ordering is key: members own key ranges and no slices",
            "remove gap.max.wait.ms, or set ordering=none",
        )


def _check_without_order(given: Given, group: str | None, gap_wait_ms: int | None, heartbeat_ms: int) -> None:
    if group is None:
        raise ConflictingOptionsError(
            "ordering=none is set, but a stream without a group shares its records with no other member",
            "remove ordering, or add the options group and redis.url",
        )
    if other := next((option for option in _OF_KEY_RANGES if option in given), None):
        raise ConflictingOptionsError(
            f"ordering=none and {other.name} are both set, but members without order own no key ranges",
            f"remove {other.name}, or set ordering=key",
        )
    _check_no_ranges(given)
    if gap_wait_ms is not None and gap_wait_ms <= heartbeat_ms:
        raise InvalidOptionError(
            f"option gap.max.wait.ms = {gap_wait_ms}: not above heartbeat.interval.ms, {heartbeat_ms}, so others would "
            "read the slices of living members",
            f"set gap.max.wait.ms to at least three heartbeats, {3 * heartbeat_ms}",
        )


def _check_no_ranges(given: Given) -> None:
    assigned = given.get(table.ASSIGN)
    if isinstance(assigned, Assigned) and assigned.pinned:
        raise ConflictingOptionsError(
            "ordering=none is set, but the option assign names key ranges, and members without order own none",
            "remove the key ranges of the option assign, or set ordering=key",
        )
    if ACKNOWLEDGEMENT in (given.get(table.COLUMNS) or ()):
        raise ConflictingOptionsError(
            f"ordering=none is set, but columns names {ACKNOWLEDGEMENT}, and no record of such a group can be "
            "acknowledged by itself",
            f"remove {ACKNOWLEDGEMENT} from columns, or set ordering=key",
        )
