"""The command `coop-kafka` as it is installed: the coordinator's verbs, Kafka's properties, the columns of a log.

Needs neither a JVM nor pyspark.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from coordinator.tools.cli import main as cli
from coordinator.tools.cli import printing
from coordinator.values.options import named
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.options.kafka_options import PREFIX, kafka_arguments
from spark_coop_source.options.kafka_table import KAFKA_NAMES, remedy

if TYPE_CHECKING:
    from coordinator.tools.audit.columns import LogColumns


def app() -> None:
    """Run the command line of this process (console script `coop-kafka`)."""
    cli.app(cli.Outside(of_properties, key_columns), KAFKA_NAMES)


def of_properties(properties: Mapping[str, str]) -> dict[str, object]:
    """The Kafka arguments of a client's properties under Java's names; raises `ConfigurationError`s.

    Names that Java's client does not know are ignored with a warning on stderr, as Kafka's tools do.
    """
    for name in sorted(properties.keys() - KAFKA_NAMES):
        if remedy(name) is None:
            printing.complain(f"warning: there is no Kafka property {named(name)}: ignored")
    return kafka_arguments({f"{PREFIX}{name}": text for name, text in properties.items()})


def key_columns(kafka: Mapping[str, object], tp: TopicPartition, stretch: OffsetRange) -> "Iterator[LogColumns]":
    """See `spark_coop_source.key_columns`, which is loaded at the first call: other verbs read no log."""
    from spark_coop_source import key_columns as reader  # noqa: PLC0415

    return reader.key_columns(kafka, tp, stretch)


if __name__ == "__main__":
    app()
