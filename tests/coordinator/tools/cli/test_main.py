"""The command line: exit codes of errors, loaded modules, and the modules that print."""

import ast
import subprocess
import sys

import pytest

from broker_jars import ROOT
from command_runs import Run


def test_an_unknown_group_is_one_line_on_stderr(run: Run, redis_url: str) -> None:
    code, out, err = run("describe", "no\nsuch group", "--redis", redis_url)

    assert (code, out) == (1, "")
    assert err.startswith("UNKNOWN_GROUP: ")
    assert "Remedy: " in err
    assert err.count("\n") == 1


def test_a_redis_that_is_not_there_is_one_line_without_the_password(run: Run) -> None:
    code, out, err = run("describe", "g", "--redis", "redis://ann:pa55word@127.0.0.1:1/0")

    assert (code, out) == (1, "")
    assert err.startswith("REDIS_UNAVAILABLE: the Redis at redis://127.0.0.1:1/0 does not answer")
    assert "pa55word" not in err
    assert err.count("\n") == 1


def test_a_url_that_cannot_be_parsed_is_not_shown(run: Run) -> None:
    code, _, err = run("describe", "g", "--redis", "redis://ann:pa[55word@h:xx/0")

    assert code == 2
    assert err.startswith("INVALID_OPTION: --redis cannot be used: host and port cannot be separated")
    assert "55word" not in err


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        pytest.param(["describe", "g"], "--redis", id="no Redis is named"),
        pytest.param(["describe", "--redis", "redis://h"], "GROUP", id="no group is named"),
        pytest.param(["descrieb"], "No such command", id="no such verb"),
        pytest.param(["describe", "g", "--yaml"], "No such option", id="no such option"),
    ],
)
def test_wrong_usage_ends_with_2(run: Run, arguments: list[str], printed: str) -> None:
    code, out, err = run(*arguments)

    assert (code, out) == (2, "")
    assert printed in err


def test_without_the_extra_the_error_names_the_package_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "coordinator.tools.cli.commands", raising=False)

    code, _, err = run("describe", "g")

    assert code == 1
    assert err.startswith("ENVIRONMENT_MISMATCH: the command coop-kafka needs the package typer")
    assert "coop-kafka[cli]" in err


def test_it_loads_neither_spark_nor_kafka() -> None:
    loading = "import coordinator.tools.cli.commands, sys"
    loaded = f"{loading}; print(*{{m.split('.')[0] for m in sys.modules}} & {{'pyspark', 'kafka'}})"
    done = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


def test_only_one_module_prints_and_only_one_makes_texts_of_tables() -> None:
    allowed = {"print": "printing.py", "echo": "", "Text": "table_rows.py"}
    for file in [
        *(ROOT / "coordinator" / "tools" / "cli").glob("*.py"),
        ROOT / "spark_coop_source" / "command_line.py",
    ]:
        for call in ast.walk(ast.parse(file.read_text())):
            function = call.func if isinstance(call, ast.Call) else None
            name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
            of_console = name == "print" and isinstance(function, ast.Attribute)
            assert of_console or allowed.get(name, file.name) == file.name, f"{file}: {name}, which escapes nothing"
