"""The public module for commits below `GroupCommits`."""

import pytest

import spark_coop_source
from spark_coop_source import offset_commits


@pytest.mark.parametrize("name", offset_commits.__all__)
def test_a_name_has_a_docstring_and_one_public_place(name: str) -> None:
    assert getattr(offset_commits, name).__doc__
    assert name not in dir(spark_coop_source)
