"""The options of a query that its tasks obey while they fetch. Imports nothing that a worker may lack."""

from dataclasses import dataclass

from coordinator.values.option_kinds import DAY_MS, INT, LONG, Duration, Integer
from coordinator.values.options import option


@dataclass(frozen=True, kw_only=True)  # without slots: options have two bases
class ReadOptions:
    """How a task reads its slices. Each option is declared here, and nowhere else."""

    poll_timeout_ms: int = option("kafkaConsumer.pollTimeoutMs", Integer(1, INT), "120000")
    kafka_max_outage_ms: int = option("kafkaMaxOutage", Duration(DAY_MS), "5m")  # not of slices that may end early
    most_unfiltered: int = option("max.bytes.fetcher.filtering", Integer(65_536, LONG), "104857600")  # bytes fetched
    most_uncompressed: int = option("max.batch.uncompressed.bytes", Integer(65_536, LONG), "1073741824")
