"""What a user's program may import lies in the package itself, and costs a task nothing."""

import ast
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import spark_coop_source
from broker_jars import ROOT
from spark_coop_source import source

SOURCE = Path(spark_coop_source.__file__)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "jobs").glob("*.py"))]
IMPORT = re.compile(r"^\s*(?:from|import) ((?:coordinator|spark_coop_source)[\w.]*)", re.MULTILINE)


def shown_to_type_checkers() -> dict[str, str]:
    """Each name that a type checker sees, and its module."""
    (block,) = (node for node in ast.parse(SOURCE.read_text()).body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert all(alias.asname == alias.name for node in imports for alias in node.names), "else it is no public name"
    return {alias.name: str(node.module) for node in imports for alias in node.names}


@pytest.mark.parametrize("name", shown_to_type_checkers())
def test_a_name_that_type_checkers_see_is_there(name: str) -> None:
    found = getattr(spark_coop_source, name)
    home = sys.modules[shown_to_type_checkers()[name]]
    assert found is getattr(home, name)
    assert found.__doc__, "users read it"


def test_dir_has_the_names_that_type_checkers_see() -> None:
    assert dir(spark_coop_source) == sorted(shown_to_type_checkers())


def test_another_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'map_in_reed'"):
        _ = spark_coop_source.map_in_reed
    with pytest.raises(ImportError):
        from spark_coop_source import map_in_reed  # noqa: F401, PLC0415


def test_the_package_itself_loads_nothing() -> None:
    """Each task imports it, and so does the command line, on machines without pyspark."""
    program = "import spark_coop_source, sys; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pyspark", "pyarrow", "numpy", "coordinator", "kafka", "redis"} & {*loaded}


@pytest.mark.parametrize("module", ["coordinator.py", "coordinator/__init__.py"])
def test_a_module_of_the_user_that_hides_ours_is_named(tmp_path: Path, module: str) -> None:
    """Python looks beside the job first."""
    hides = tmp_path / module
    hides.parent.mkdir(exist_ok=True)
    hides.write_text("raise SystemExit('it is not run')")
    program = [sys.executable, "-c", "import spark_coop_source"]
    failed = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    (last,) = failed.stderr.splitlines()[-1:]
    assert last.startswith(f"ImportError: {hides} is imported instead of coop-kafka's own package coordinator in ")
    assert last.endswith("Remedy: rename your module")


def test_spark_finds_the_same_source() -> None:
    assert spark_coop_source.CoopKafkaDataSource is source.CoopKafkaDataSource


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_import_public_names_only(page: Path) -> None:
    assert {*IMPORT.findall(page.read_text())} <= {
        "spark_coop_source",
        "spark_coop_source.testing",
        "spark_coop_source.offset_commits",
    }


TYPED = """
import pyarrow as pa  # type: ignore[import-untyped]

from spark_coop_source import KeyRecords, OffsetRange, OnError, TopicPartition, errors, map_batches, map_keys
from spark_coop_source.offset_commits import CommitApi


def enrich(key: bytes | None, records: KeyRecords) -> pa.RecordBatch | None:
    return records.arrow


dead = OnError(attempts=5, then="park")
options: dict[str, str] = map_keys(enrich, "key binary", on_error=dead)
map_batches(enrich, 3)  # type: ignore[arg-type]  # an error only where types are known
try:
    with CommitApi.of_offset("redis://localhost:6379/0", "{}") as commits:
        commits.commit(TopicPartition("orders", 0), [OffsetRange(1, 2)])
except errors.FencedMemberError as error:
    print(error.remedy)
"""


@pytest.mark.server
def test_a_users_program_is_checked_strictly_against_our_types(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "job.py"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, "Success: no issues found in 1 source file\n"), checked.stderr


def test_the_package_needs_pyspark_only_with_the_extra() -> None:
    """A managed platform brings its own Spark, and the command line needs none."""
    wanted = [text for text in metadata.requires("coop-kafka") or () if re.match(r"pyspark\b(?!-)", text)]
    assert [text.partition("; ")[2] for text in wanted] == ['extra == "spark"', 'extra == "test"']
