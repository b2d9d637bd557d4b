"""The archive of classes from which the JVMs of Spark start."""

from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

import class_archive
from environment import CLASSES


def test_the_jvm_of_spark_starts_from_the_archive(spark: SparkSession) -> None:
    if not CLASSES.is_file():
        pytest.skip("this Java made no archive of classes")
    jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    assert str(CLASSES) in {mapped.path for mapped in psutil.Process(jvm).memory_maps()}


def test_without_an_archive_a_jvm_gets_the_users_options_only(tmp_path: Path) -> None:
    assert class_archive.use(tmp_path / "none", "-Da=b") == "-Da=b"


def test_an_archive_is_named_once_before_the_users_options(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    archive.touch()
    options = class_archive.use(archive, "-Da=b")
    assert options == f"-XX:SharedArchiveFile={archive} -Da=b"
    assert class_archive.use(archive, options) == options
