"""The names that a user's program may import.

    from spark_coop_source import OnError, map_records

`spark_coop_source.testing` and `spark_coop_source.offset_commits` are public too. All other modules are private: each
release may change them.

Tasks and the command line import this package too, and need none of these names. So each is loaded at its first use.
"""

from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coordinator import errors as errors
    from coordinator.assignment.assignors.assignor import Assignment as Assignment
    from coordinator.assignment.assignors.assignor import Assignor as Assignor
    from coordinator.assignment.assignors.assignor import Subscriber as Subscriber
    from coordinator.assignment.assignors.grouped import Grouped as Grouped
    from coordinator.assignment.ownership_listener import OwnershipListener as OwnershipListener
    from coordinator.commits.group_commits import GroupCommits as GroupCommits
    from coordinator.values.ranges import HashRange as HashRange
    from coordinator.values.ranges import OffsetRange as OffsetRange
    from coordinator.values.subscription import TopicPartition as TopicPartition
    from spark_coop_source.errors_in_spark import error_of as error_of
    from spark_coop_source.function.on_error import FailedRecord as FailedRecord
    from spark_coop_source.function.on_error import OnError as OnError
    from spark_coop_source.function.rows import KeyRecords as KeyRecords
    from spark_coop_source.functions import map_batches as map_batches
    from spark_coop_source.functions import map_keys as map_keys
    from spark_coop_source.functions import map_records as map_records
    from spark_coop_source.metrics.listener import ProgressListener as ProgressListener
    from spark_coop_source.metrics.prometheus import ProgressMetrics as ProgressMetrics
    from spark_coop_source.metrics.query_progress import QueryProgress as QueryProgress
    from spark_coop_source.sink_audit import audit as audit
    from spark_coop_source.source import CoopKafkaDataSource as CoopKafkaDataSource

_PLACES = {
    "Assignment": "coordinator.assignment.assignors.assignor:Assignment",
    "Assignor": "coordinator.assignment.assignors.assignor:Assignor",
    "CoopKafkaDataSource": "spark_coop_source.source:CoopKafkaDataSource",
    "FailedRecord": "spark_coop_source.function.on_error:FailedRecord",
    "GroupCommits": "coordinator.commits.group_commits:GroupCommits",
    "Grouped": "coordinator.assignment.assignors.grouped:Grouped",
    "HashRange": "coordinator.values.ranges:HashRange",
    "OffsetRange": "coordinator.values.ranges:OffsetRange",
    "OnError": "spark_coop_source.function.on_error:OnError",
    "OwnershipListener": "coordinator.assignment.ownership_listener:OwnershipListener",
    "ProgressListener": "spark_coop_source.metrics.listener:ProgressListener",
    "ProgressMetrics": "spark_coop_source.metrics.prometheus:ProgressMetrics",
    "QueryProgress": "spark_coop_source.metrics.query_progress:QueryProgress",
    "Subscriber": "coordinator.assignment.assignors.assignor:Subscriber",
    "TopicPartition": "coordinator.values.subscription:TopicPartition",
    "audit": "spark_coop_source.sink_audit:audit",
    "error_of": "spark_coop_source.errors_in_spark:error_of",
    "errors": "coordinator.errors",
    "KeyRecords": "spark_coop_source.function.rows:KeyRecords",
    "map_batches": "spark_coop_source.functions:map_batches",
    "map_keys": "spark_coop_source.functions:map_keys",
    "map_records": "spark_coop_source.functions:map_records",
}


def _check_that_nothing_hides_us() -> None:
    """Raise `ImportError` if a user's module is imported instead of our package `coordinator`."""
    found, ours = find_spec("coordinator"), Path(__file__).parents[1] / "coordinator"
    places = found.submodule_search_locations if found else None
    if str(ours) not in (places or ()):
        what = f"{found.origin} is" if found and found.origin else "another module is"
        raise ImportError(
            f"{what} imported instead of coop-kafka's own package coordinator in {ours}. Remedy: rename your module"
        )


_check_that_nothing_hides_us()


def __getattr__(name: str) -> object:
    """A public name at its first use (PEP 562); raises `AttributeError` for any other."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, resolve_name(_PLACES[name]))


def __dir__() -> list[str]:
    """The public names, also those that are not loaded yet."""
    return sorted(_PLACES)
