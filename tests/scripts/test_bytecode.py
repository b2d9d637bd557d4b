"""Archives of Spark's sources, with bytecode beside them."""

import subprocess
import sys
import zipfile
from pathlib import Path

import bytecode


def imported(archive: Path) -> str:
    code = "import sample, sys; print(sample.WHAT, sample.__spec__.origin)"
    path = {"PYTHONPATH": str(archive)}
    return subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, text=True, check=True).stdout


def test_python_imports_the_bytecode_of_an_archive_and_a_second_time_changes_nothing(tmp_path: Path) -> None:
    archive = tmp_path / "sources.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("sample/__init__.py", "WHAT = 'the same'")
    bytecode.add(archive)
    assert imported(archive) == f"the same {archive}/sample/__init__.pyc\n"
    bytecode.add(archive)
    with zipfile.ZipFile(archive) as made:
        assert made.namelist() == ["sample/__init__.py", "sample/__init__.pyc"]
