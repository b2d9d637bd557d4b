"""The manifest beside the image has the schema of the Spark operator, and its sizes are ours.

`scripts/image` builds the image, and runs queries in it.
"""

import re
import shlex
from typing import Any

import pytest
import yaml
from kubeflow_spark_api.models.spark_v1beta2_spark_application import SparkV1beta2SparkApplication

from broker_jars import ROOT
from command_runs import Run
from spark_coop_source.options.declarations import OPTION_OF

PAGE = (ROOT / "conf" / "image" / "spark-application.yaml").read_text()
MANIFEST: dict[str, Any] = yaml.safe_load(PAGE)
SPEC: dict[str, Any] = MANIFEST["spec"]


def test_the_manifest_has_the_schema_of_the_spark_operator() -> None:
    read = SparkV1beta2SparkApplication.from_dict(MANIFEST)
    assert read is not None
    assert read.to_dict() == MANIFEST, "it drops names that it does not know"


def test_shared_memory_has_twice_the_cache_and_the_named_slots_are_those_of_the_executors() -> None:
    (shared_memory,) = (v["emptyDir"] for v in SPEC["volumes"] if "emptyDir" in v)
    size = 2 * int(OPTION_OF["cache_bytes"].parse(str(OPTION_OF["cache_bytes"].default))) // 2**20
    assert shared_memory == {"medium": "Memory", "sizeLimit": f"{size}Mi"}
    slots = re.search(r"slots=(\d+)", PAGE)
    assert slots is not None
    assert int(slots[1]) == SPEC["executor"]["instances"] * SPEC["executor"]["cores"]


def test_the_manifest_names_the_spark_of_the_image() -> None:
    version = re.search(r"^ARG SPARK_VERSION=(.*)$", (ROOT / "conf" / "image" / "Dockerfile").read_text(), re.MULTILINE)
    assert version is not None
    assert version[1] == SPEC["sparkVersion"]


@pytest.mark.server
def test_the_driver_is_drained_before_it_ends(redis_url: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shell, option, command = SPEC["driver"]["lifecycle"]["preStop"]["exec"]["command"]
    assert (shell, option) == ("sh", "-c")
    monkeypatch.setenv("COOP_REDIS", redis_url)
    code, _, err = run(*shlex.split(command.replace("$(hostname)", "driver-1").removeprefix("coop-kafka ")))
    assert (code, err.partition(":")[0]) == (1, "UNKNOWN_GROUP"), "a command of ours, and no such group here"
