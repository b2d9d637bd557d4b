"""The options of a query that its tasks obey while they fetch. Imports nothing that a worker may lack."""

from dataclasses import dataclass

from coordinator.values.option_kinds import DAY_MS, INT, Duration, Size
from coordinator.values.options import option


@dataclass(frozen=True, kw_only=True)  # without slots: options have two bases
class ReadOptions:
    """How a task reads its slices. Each option is declared here, and nowhere else."""

    poll_timeout_ms: int = option("kafkaConsumer.pollTimeoutMs", Duration(INT, 1), "120s")
    kafka_max_outage_ms: int = option("kafkaMaxOutage", Duration(DAY_MS), "5m")  # not of slices that may end early
    most_unfiltered: int = option(
        "fetchMemory", Size(65_536), "100MiB", also={"max.bytes.fetcher.filtering": None}
    )  # bytes fetched
    most_uncompressed: int = option("maxBatchUncompressedBytes", Size(65_536), "1GiB")
