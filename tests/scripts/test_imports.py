"""No module imports itself by way of others: an import under TYPE_CHECKING or inside a function counts as any other."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from broker_jars import ROOT

SOURCES = (ROOT, ("coordinator", "spark_coop_source")), (ROOT / "scripts" / "lib", (".",))
"""Folders from which modules are named, each with those of its folders that are searched."""

Graph = Mapping[str, frozenset[str]]


def modules_in(root: Path, folders: Iterable[str]) -> dict[str, Path]:
    """Each module below `folders` by its dotted name, which begins at `root`."""
    files = [file for folder in folders for file in (root / folder).rglob("*.py")]
    return {".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


def imported(module: str, file: Path) -> Iterator[str]:
    """Each name that a module's source imports, dotted: the name of a module, or of something in it."""
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            yield from (".".join([*above, *filter(None, [node.module]), alias.name]) for alias in node.names)


def graph_of(modules: Mapping[str, Path]) -> Graph:
    """For each module those of `modules` that it imports."""

    def known(name: str) -> str:
        return name if name in modules else name.rpartition(".")[0]

    return {
        module: frozenset(known(name) for name in imported(module, file)) & modules.keys() - {module}
        for module, file in modules.items()
    }


def circle_in(graph: Graph) -> list[str]:
    """The modules of one circle, the first again at the end; none if there is no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def every_module() -> dict[str, Path]:
    return {name: file for root, folders in SOURCES for name, file in modules_in(root, folders).items()}


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle_in(graph_of(every_module())) == []


def test_the_graph_has_the_modules_of_all_sources() -> None:
    graph = graph_of(every_module())
    assert "spark_coop_source.task.slice_reader" in graph["spark_coop_source.task.read"], "imported inside a function"
    assert "coordinator.progress.segments" in graph["coordinator.redis.group_state"]
    assert "simulation.world" in graph["simulation.schedules"]


@pytest.mark.parametrize(
    "back",
    [
        "import a.one",
        "import a.one as first",
        "from a import one",
        "from a.one import ONE",
        "from . import one",
        "from .one import ONE",
        "from ..a.one import ONE",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a.one import ONE",
        "def f():\n    from a.one import ONE",
        "class Two:\n    def f(self):\n        import a.one",
    ],
)
def test_each_form_of_import_closes_a_circle(tmp_path: Path, back: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "__init__.py").write_text("")
    (tmp_path / "a" / "one.py").write_text("from a import two\nONE = 1")
    (tmp_path / "a" / "two.py").write_text(back)
    assert set(circle_in(graph_of(modules_in(tmp_path, ["a"])))) == {"a.one", "a.two"}


def test_modules_without_a_circle_have_none(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "__init__.py").write_text('"""A package that imports nothing."""')
    (tmp_path / "a" / "one.py").write_text("import os\nfrom a import two, three")
    (tmp_path / "a" / "two.py").write_text("from a.three import THREE")
    (tmp_path / "a" / "three.py").write_text("from pathlib import Path\nTHREE = Path()")
    assert circle_in(graph_of(modules_in(tmp_path, ["a"]))) == []
