"""Test files lie where their code lies, and the tests of each module are found by its name or in README.md."""

import re
from pathlib import Path

from broker_jars import ROOT

TESTS = ROOT / "tests"
OF_NO_FOLDER = {"end_to_end", "hostile", "rules", "support"}
"""Top folders without a counterpart in the code; README.md describes them."""

OF_ALL_CODE = {"test_layout.py", "test_names.py"}

ROW = re.compile(r"\| `([\w/]+)` \| ([\w, ]+) \| (none: .+|(?:`[\w/]+\.py`(?:, )?)+) \|")
ROWS = [row.groups() for row in map(ROW.fullmatch, (TESTS / "README.md").read_text().splitlines()) if row]
LISTED = [f"{folder}/{name}.py" for folder, names, _ in ROWS for name in names.split(", ")]


def code_of(folder: Path) -> Path:
    """The folder of the code whose tests lie in `folder`."""
    inside = folder.relative_to(TESTS).as_posix()
    return ROOT / re.sub(r"^scripts\b", "scripts/lib", inside)


def modules() -> list[str]:
    """The modules of both packages, as paths; a package's own file counts by the name of its folder."""
    files = (file for package in ("coordinator", "spark_coop_source") for file in (ROOT / package).rglob("*.py"))
    return sorted(f.relative_to(ROOT).as_posix() for f in files if f.name != "__init__.py")


def file_of(module: str) -> Path:
    """The test file that has the module's name."""
    return TESTS / Path(module).parent / f"test_{Path(module).name}"


def test_the_wheel_has_every_package() -> None:
    """And one with another folder: PySpark finds the data source by its name."""
    listed = re.search(r"^packages =\n((?:    .+\n)+)", (ROOT / "setup.cfg").read_text(), re.MULTILINE)
    assert listed is not None
    inits = [file for top in ("coordinator", "spark_coop_source") for file in (ROOT / top).rglob("__init__.py")]
    folders = {file.parent.relative_to(ROOT).as_posix().replace("/", ".") for file in inits}
    assert set(listed[1].split()) == folders - {"spark_coop_source.autoload"} | {"pyspark_coop_kafka"}


def test_every_test_file_lies_in_a_folder_with_a_counterpart_in_the_code() -> None:
    files = [f for f in TESTS.rglob("test_*.py") if f.relative_to(TESTS).as_posix() not in OF_ALL_CODE]
    of_code = [f for f in files if f.relative_to(TESTS).parts[0] not in OF_NO_FOLDER]
    assert [f for f in of_code if f.parent == TESTS or not code_of(f.parent).is_dir()] == []


def test_helpers_and_tests_do_not_lie_together() -> None:
    support = [f for f in TESTS.rglob("*.py") if f.relative_to(TESTS).parts[0] == "support"]
    others = [f for f in TESTS.rglob("*.py") if f not in support]
    assert [f for f in support if f.name.startswith("test_")] == []
    assert [f for f in others if not f.name.startswith("test_")] == [TESTS / "conftest.py"]


def test_every_module_has_tests_of_its_name_or_a_row_in_the_readme() -> None:
    wanted = modules()
    assert [m for m in wanted if not file_of(m).is_file() and m not in LISTED] == []


def test_every_row_is_of_modules_that_exist_and_have_no_tests_of_their_names() -> None:
    assert [m for m in LISTED if m not in modules() or file_of(m).is_file()] == []


def test_every_row_names_tests_that_exist() -> None:
    named = [name for *_, tests in ROWS for name in re.findall(r"`(.+?)`", tests)]
    assert [name for name in named if not (TESTS / name).is_file()] == []
