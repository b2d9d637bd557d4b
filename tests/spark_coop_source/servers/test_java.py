"""The jars of a program: fetched once, complete or missing. Which Java is refused: scripts/test_environment.py."""

from pathlib import Path

import pytest

from spark_coop_source.servers.java import JarSet

IVY = """#!/bin/sh
[ "$(cat "{wanted}")" = broken ] && echo "no such module" && exit 1
for last; do :; done
mkdir -p "${{last%/*}}" && touch "${{last%/*}}/$(cat "{wanted}").jar" && echo fetched >> "{calls}"
"""


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JarSet:
    """The jar that a file names, from a Java whose Ivy fetches it."""
    java, wanted = tmp_path / "bin" / "java", tmp_path / "ivy.xml"
    java.parent.mkdir()
    java.write_text(IVY.format(wanted=wanted, calls=tmp_path / "calls"))
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    wanted.write_text("first")
    return JarSet(tmp_path / "cache" / "program", wanted, "a program")


def test_jars_are_fetched_once_and_again_if_others_are_wanted(jars: JarSet, tmp_path: Path) -> None:
    assert not jars.present()
    for name, calls in (("first", 1), ("first", 1), ("second", 2)):
        jars.wanted.write_text(name)
        jars.fetch(tmp_path)
        assert jars.present()
        assert [jar.name for jar in jars.jars] == [f"{name}.jar"]
        assert len((tmp_path / "calls").read_text().splitlines()) == calls


def test_a_failure_leaves_the_jars_of_before(jars: JarSet, tmp_path: Path) -> None:
    jars.fetch(tmp_path)
    jars.wanted.write_text("broken")
    with pytest.raises(RuntimeError, match="could not fetch a program, tried 2 times:\nno such module"):
        jars.fetch(tmp_path)
    assert not jars.present()
    assert [jar.name for jar in jars.jars] == ["first.jar"]
    assert sorted(path.name for path in jars.folder.parent.iterdir()) == ["ivy.lock", "program"]
