"""A contract of import-linter for modules that import one another through sys.path, without a package around them.

Import-linter reads packages only. It reads `scripts` as one, and so knows `scripts.lib.servers` as a module. But
`import servers` is, for import-linter, an import of something external. This contract adds these imports to the graph,
also those under TYPE_CHECKING and those in functions.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from grimp import ImportGraph
from importlinter import ContractCheck, fields
from importlinter.contracts.layers import LayersContract


class LayersOnPath(LayersContract):
    """The contract `layers` for a folder on sys.path; `folder` is its dotted name."""

    type_name = "layers_on_path"
    folder = fields.StringField()

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Check the layers in the graph with all imports of the folder."""
        folder = f"{self.folder}."
        for importer in sorted(module for module in graph.modules if module.startswith(folder)):
            for line, name in _imports(_file(importer)):
                module = folder + name if folder + name in graph.modules else folder + name.rpartition(".")[0]
                if module in graph.modules and module != importer:
                    graph.add_import(importer=importer, imported=module, line_number=line, line_contents=name)
        return super().check(graph, verbose)


def _file(module: str) -> Path:
    """The file of a module, without an import of the packages around it; the linter runs in the folder's parent."""
    path = Path(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _imports(file: Path) -> Iterator[tuple[int, str]]:
    """Each imported name with its line: `a.b` for `import a.b`, and also for `from a import b`."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(str(module), names, 0):
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in names)
