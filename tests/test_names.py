"""A dictionary of names: each public type name of the code is defined in one module, so it means one thing."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from broker_jars import ROOT


def defined(tree: ast.Module) -> Iterator[str]:
    """The public types of a module: classes, and names of types. No type variables."""
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                made_by = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
                if made_by != "TypeVar" and re.fullmatch("[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*", name):
                    yield name


def modules_of_names() -> Counter[str]:
    """How many modules define each name."""
    files = [file for top in ("coordinator", "spark_coop_source") for file in (ROOT / top).rglob("*.py")]
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    return Counter(name for tree in trees for name in {*defined(tree)} if not name.startswith("_"))


def test_no_two_modules_define_one_public_type_name() -> None:
    found = modules_of_names()
    assert len(found) > 500
    assert [name for name, modules in found.items() if modules > 1] == []


def test_classes_and_aliases_count_and_type_variables_do_not() -> None:
    code = "class A: ...\nBig = dict[str, int]\nC: TypeAlias = int\nT = TypeVar('T')\nMOST = 3\n_Own = int\n"
    assert [*defined(ast.parse(code))] == ["A", "Big", "C"]
