"""docs/monitoring.md names the loggers that the code has, and no others."""

import ast
import re
from collections.abc import Iterator

from broker_jars import ROOT
from coordinator.redis.lane_lines import BatchLine
from spark_coop_source import logs

PAGE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
NAMED = re.findall(r"^\| `([a-z_.]+)` \|", PAGE.split("## Loggers")[1].split("## JSON")[0], re.MULTILINE)


def of_code() -> Iterator[str]:
    """The names of the loggers that modules of both packages log to."""
    for package in logs.OURS:
        for file in (ROOT / package).rglob("*.py"):
            module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(call, ast.Assign) and "getLogger(" in ast.unparse(call.value):
                    name = ast.unparse(call.value).partition("(")[2].rstrip(")")
                    yield module if name == "__name__" else ast.literal_eval(name)


def test_every_logger_begins_with_a_name_of_the_page_and_every_name_has_a_logger() -> None:
    names = [*of_code()]
    assert "coordinator.batches" in names
    assert [name for name in names if not any(name == n or name.startswith(f"{n}.") for n in NAMED)] == []
    assert [n for n in NAMED if not any(name == n or name.startswith(f"{n}.") for name in names)] == []


def test_the_page_names_the_variables_and_their_values() -> None:
    for variable, values in ((logs.LEVEL, logs.LEVELS), (logs.FORMAT, logs.FORMATS)):
        (row,) = re.findall(rf"^\| `{variable}` \| (.+?) \|", PAGE, re.MULTILINE)
        assert row == ", ".join(f"`{value}`" for value in values)


def test_the_line_of_a_batch_is_that_of_the_code() -> None:
    line = BatchLine("m-1", 1_200, 34_567, 1.203, 8, "orders 0 0000000000000000-0fffffffffffffff", reading=12)
    assert f"INFO coordinator.batches: {line.text('orders')}\n" in PAGE
    assert BatchLine("", 5, None, 0.5, 1, "-").text("") == "batch of 5 records in 0.500 s; 1 lanes, slowest -"
