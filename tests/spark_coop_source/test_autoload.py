"""The source registers itself when the wheel is installed, and cannot harm other sources."""

import subprocess
import sys
from importlib.util import find_spec

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession


def test_spark_knows_the_format_without_a_register_call(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match=r"kafka\.bootstrap\.servers"):
        spark.read.format("coop-kafka").load()


@pytest.mark.skipif(find_spec("pyspark_coop_kafka") is None, reason="the wheel is not installed")
def test_importing_the_module_that_spark_finds_loads_nothing_of_ours() -> None:
    code = (
        "import sys, pyspark_coop_kafka; assert pyspark_coop_kafka.DefaultSource.name() == 'coop-kafka';"
        "print([name for name in sys.modules if name.split('.')[0] in"
        " ('spark_coop_source', 'coordinator', 'kafka', 'redis', 'pyarrow', 'numpy')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
