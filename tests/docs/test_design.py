"""DESIGN.md names files that exist, maps every folder, and answers "where is it decided" with two files at most."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from broker_jars import ROOT

PAGE = (ROOT / "DESIGN.md").read_text(encoding="utf-8")
MOST_WORDS, MOST_LINES, QUESTIONS = 3_700, 6, 10
MOST_OPENED, CHANGES = 3, 5
PATH = re.compile(r"`((?:[\w.-]+/)+(?:[\w-]+\.\w+)?)`")
"""A folder or a file, from the top of the repository."""

GROUPS = (
    "Positions and crashes",
    "Ownership and membership",
    "Reading and decoding",
    "Planning and slow keys",
    "Redis and Lua",
    "Tests and proofs",
)


def section(heading: str) -> str:
    """The text below a heading of the second level."""
    return PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def rows(text: str) -> Iterator[list[str]]:
    """The cells of the rows of all tables, without their heads."""
    for table in re.findall(r"^\|(?:---\|)+\n((?:\|.*\n?)+)", text, re.MULTILINE):
        yield from ([cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines())


def tracked(*folders: str) -> list[PurePosixPath]:
    """The files of the repository in these folders; also new ones, which git does not know yet."""
    command = ("git", "ls-files", "--cached", "--others", "--exclude-standard", *folders)
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [PurePosixPath(name) for name in listed.splitlines() if (ROOT / name).is_file()]


def folders_of(*tops: str) -> set[str]:
    """The folders below these, at any depth."""
    return {f"{folder}/" for file in tracked(*tops) for folder in file.parents if len(folder.parts) > 1}


def mapped() -> list[str]:
    """The folders of the map."""
    return [name for row in rows(section("File map")) for name in PATH.findall(" ".join(row)) if name.endswith("/")]


def items(group: str) -> list[str]:
    """The items of a group."""
    return section(group).strip().split("\n\n")


def test_every_file_that_is_named_exists() -> None:
    names = PATH.findall(PAGE)
    assert len(names) > 100
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_every_link_has_a_target() -> None:
    headings = {
        re.sub(r"[^a-z0-9 -]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    }
    for document, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", PAGE):
        text = (ROOT / document).read_text(encoding="utf-8") if document else ""
        of_document = {h.lower().replace(" ", "-") for h in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
        anchors = {*re.findall(r'<a id="([^"]+)">', text), *of_document} if document else headings
        assert not anchor or anchor in anchors, f"{document}#{anchor}"


@pytest.mark.parametrize("top", ["coordinator", "spark_coop_source", "scripts/lib"])
def test_every_folder_of_the_code_is_in_the_map(top: str) -> None:
    assert folders_of(top) - {f"{top}/"} - set(mapped()) == set()


def test_every_folder_of_tests_is_in_the_map() -> None:
    tops = {f"tests/{file.parts[1]}/" for file in tracked("tests") if len(file.parts) > 2}
    assert tops - set(mapped()) == set()


def test_every_module_of_a_member_has_one_row_in_the_map() -> None:
    table = section("File map").split("| module | content |", 1)[1].split("\n\n", 1)[0]
    named = [cells[0].strip("`") for cells in rows(table.lstrip("\n"))]
    modules = [file.name for file in tracked("coordinator/member") if file.name != "__init__.py"]
    assert sorted(named) == sorted(modules)


def test_every_group_is_in_the_index() -> None:
    index = PAGE.split("\n## ", 1)[0]
    assert [g for g in GROUPS if f"(#{g.lower().replace(' ', '-')})" not in index] == []


@pytest.mark.parametrize("group", GROUPS)
def test_every_item_names_its_file_and_is_short(group: str) -> None:
    named = re.compile(r"\*\*[^*]+\.\*\* `[\w./-]+\.\w+`\. ")
    found = items(group)
    assert len(found) > 3
    assert [item for item in found if not named.match(item) or item.count("\n") >= MOST_LINES] == []


def test_every_question_is_answered_by_two_files_at_most() -> None:
    answers = list(rows(section("Where is it decided")))
    assert len(answers) >= QUESTIONS
    for question, files in answers:
        named = PATH.findall(files)
        assert question.endswith("?"), question
        assert ", ".join(f"`{name}`" for name in named) == files, question
        assert 1 <= len({*named}) <= 2, question
        assert all((ROOT / name).is_file() for name in named), question


def test_a_usual_change_opens_three_files_at_most() -> None:
    changes = list(rows(section("If you are about to")))
    assert len(changes) >= CHANGES
    for change, opened, before in changes:
        assert 1 <= len(opened.split("; ")) <= MOST_OPENED, change
        assert int(before) >= len(opened.split("; ")), change


def test_the_page_is_short() -> None:
    assert len(PAGE.split()) <= MOST_WORDS
