"""`scripts/release --check` finds what a release lacks, in the texts of this checkout and in small ones."""

import json

import pytest

import release
from broker_jars import ROOT

SETUP = (ROOT / "setup.cfg").read_text()

VERSIONS = [
    ("a plain version that has no tag", "1.2.0", True),
    ("a candidate", "1.2.0rc1", True),
    ("a version that has a tag", "1.1.0", False),
    ("a version with a name of its own", "1.2.0-final", False),
    ("nothing", "", False),
]


@pytest.mark.parametrize(("version", "right"), [row[1:] for row in VERSIONS], ids=[row[0] for row in VERSIONS])
def test_a_version_is_plain_and_new(version: str, right: bool) -> None:
    assert release.of_version(version, ["v1.0.0", "v1.1.0"]).right is right


CHANGELOGS = [
    ("cut, with a new section above", "# C\n\n## Unreleased\n\n## 1.2.0 (2026-12-01)\n\n- x\n", True),
    ("cut, without one", "# C\n\n## 1.2.0 (2026-12-01)\n\n- x\n", True),
    ("a change is still above", "# C\n\n## Unreleased\n\n- y\n\n## 1.2.0 (2026-12-01)\n\n- x\n", False),
    ("no date", "# C\n\n## 1.2.0\n\n- x\n", False),
    ("another version", "# C\n\n## 1.1.0 (2026-11-01)\n\n- x\n", False),
    ("a version that only begins so", "# C\n\n## 1.2.01 (2026-11-01)\n\n- x\n", False),
]


@pytest.mark.parametrize(("text", "right"), [row[1:] for row in CHANGELOGS], ids=[row[0] for row in CHANGELOGS])
def test_a_changelog_is_cut(text: str, right: bool) -> None:
    assert release.of_changelog(text, "1.2.0").right is right


def test_a_licence_lies_in_the_archive() -> None:
    assert release.of_licence(["a-1.dist-info/licenses/LICENSE"], "wheel").right
    assert not release.of_licence(["a/LICENSES.py"], "wheel").right


def test_the_metadata_names_each_address() -> None:
    urls = "".join(f"Project-URL: {label}, https://example.org/{label}\n" for label in release.URLS)
    assert release.of_urls(urls).right
    missing = release.of_urls(urls.replace("Project-URL: Issues", "Project-URL: Chat"))
    assert (missing.right, "Issues" in missing.text) == (False, True)


def test_the_bill_lists_what_the_package_needs() -> None:
    parts = [{"name": name, "version": "1"} for name in release.requirements(SETUP)]
    bill = {"bomFormat": "CycloneDX", "components": parts}
    assert release.of_bill(json.dumps(bill), release.requirements(SETUP)).right
    lacking = release.of_bill(json.dumps({**bill, "components": parts[1:]}), release.requirements(SETUP))
    assert (lacking.right, parts[0]["name"] in lacking.text) == (False, True)
    assert not release.of_bill(json.dumps({**bill, "bomFormat": "SPDX"}), []).right


def test_it_reads_setup_cfg() -> None:
    assert release.of_version(release.version_of(SETUP), []).right
    assert {"kafka-python", "redis", "mmh3", "numpy", "pyarrow"} <= set(release.requirements(SETUP))
