"""The command `coop-kafka` as it is installed: the coordinator's verbs, and the parser of Kafka's properties.

Needs neither a JVM nor pyspark.
"""

from collections.abc import Mapping

from coordinator.cli import main as cli
from coordinator.cli import printing
from spark_coop_source.options.kafka_options import PREFIX, kafka_arguments
from spark_coop_source.options.kafka_table import KAFKA_NAMES, remedy
from spark_coop_source.options.values import named


def app() -> None:
    """Run the command line of this process (console script `coop-kafka`)."""
    cli.app(of_properties, KAFKA_NAMES)


def of_properties(properties: Mapping[str, str]) -> dict[str, object]:
    """The Kafka arguments of a client's properties under Java's names; raises `ConfigurationError`s.

    Names that Java's client does not know are ignored with a warning on stderr, as Kafka's tools do.
    """
    for name in sorted(properties.keys() - KAFKA_NAMES):
        if remedy(name) is None:
            printing.complain(f"warning: there is no Kafka property {named(name)}: ignored")
    return kafka_arguments({f"{PREFIX}{name}": text for name, text in properties.items()})


if __name__ == "__main__":
    app()
