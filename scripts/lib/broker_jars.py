"""Java programs for tests, the demo and the benchmarks, in the checkout's `.cache`.

Standard library only, because it also runs before anything is installed.
"""

from pathlib import Path

from spark_coop_source.servers.java import JarSet, broker_jars

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"


def _jars(name: str, wanted: str, what: str) -> JarSet:
    return JarSet(CACHE / name, ROOT / "conf" / wanted, what)


BROKER = broker_jars(CACHE)
CONNECTOR = _jars("spark-kafka-4.2.0", "connector-ivy.xml", "Spark's Kafka source, to compare with")
PARALLEL_CONSUMER = _jars("parallel-consumer-0.5.3.3", "parallel-consumer-ivy.xml", "parallel-consumer")
TLC = _jars("tlc-1.1.0", "tlc-ivy.xml", "TLC")
MIRROR_MAKER = _jars("mirror-maker-4.2.0", "mirror-maker-ivy.xml", "MirrorMaker 2")
