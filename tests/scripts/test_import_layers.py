"""The contract of import-linter for modules on sys.path finds imports that import-linter itself takes for external."""

import subprocess
import sys
from pathlib import Path

import pytest

from broker_jars import ROOT

pytestmark = pytest.mark.server  # import-linter is in this checkout's environment, not among what the tests need
SETUP = """
[importlinter]
root_package = things
include_external_packages = true
exclude_type_checking_imports = true
contract_types =
    layers_on_path: scripts.lib.import_layers.LayersOnPath

[importlinter:contract:one]
name = one
type = layers_on_path
folder = things.lib
containers = things.lib
exhaustive = true
layers =
    upper
    lower
"""


def lint(folder: Path, **files: str) -> tuple[int, str]:
    """The verdict of import-linter on `things/lib/upper.py` and the package `things/lib/lower/`."""
    (folder / "setup.cfg").write_text(SETUP)
    lib = folder / "things" / "lib"
    (lib / "lower").mkdir(parents=True)
    files = {"upper": "from lower.values import X", "lower/__init__": "", "lower/values": ""} | files
    for name, text in files.items():
        (lib / f"{name}.py").write_text(text)
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    environment = {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout + ran.stderr


def test_imports_that_go_downwards_are_kept(tmp_path: Path) -> None:
    code, printed = lint(tmp_path)
    assert code == 0, printed


@pytest.mark.parametrize(
    "upwards",
    [
        "import upper",
        "from upper import Y",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from upper import Y",
        "def late() -> None:\n    import upper",
    ],
)
def test_an_import_that_goes_upwards_is_found(tmp_path: Path, upwards: str) -> None:
    code, printed = lint(tmp_path, **{"lower/values": upwards})
    assert code == 1
    assert "things.lib.lower is not allowed to import things.lib.upper" in printed


def test_a_module_that_no_layer_names_is_found(tmp_path: Path) -> None:
    code, printed = lint(tmp_path, other="")
    assert code == 1
    assert "things.lib.other" in printed
