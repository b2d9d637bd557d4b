"""Builds the documentation as a site with a search, which needs nothing from another host.

The pages are README.md, DESIGN.md, CHANGELOG.md and those of docs/, as they stand, and one of the Python API. A link to
a page or anchor that is not there ends the build.
"""

import argparse
import logging
import os
import re
import shutil
import sys
import tempfile
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

os.environ["NO_MKDOCS_2_WARNING"] = "1"  # about a later MkDocs; setup.cfg keeps it below that

from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import MkDocsException

from broker_jars import CACHE, ROOT
from pages import python_page

LINK = re.compile(r"\]\(([^)#:]+)\)")


def stage(pages: Path) -> None:
    """Copy the pages, and the files that they link to, into a folder where the same links hold."""
    for page in (ROOT / "README.md", ROOT / "DESIGN.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")):
        linked = [(page.parent / link).resolve() for link in LINK.findall(page.read_text(encoding="utf-8"))]
        for file in (page, *filter(Path.is_file, linked)):
            _copy(file, pages)
    _copy(ROOT / "conf" / "site.css", pages)
    (pages / "docs" / "python-api.md").write_text(python_page.markdown(), encoding="utf-8")


def _copy(file: Path, pages: Path) -> None:
    copy = pages / file.relative_to(ROOT)
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, copy)


def make(pages: Path, output: Path) -> None:
    """Build the site of these pages into a folder; raises `MkDocsException` if a page is wrong."""
    own = ROOT / "conf" / "mkdocs.yml"
    config = load_config(str(own), docs_dir=str(pages), site_dir=str(output.resolve()), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)


def serve(folder: Path, port: int) -> None:
    """Serve a folder until the process is interrupted."""
    try:
        opened = ThreadingHTTPServer(("127.0.0.1", port), partial(SimpleHTTPRequestHandler, directory=folder))
    except (OSError, OverflowError) as error:
        sys.exit(f"Port {port} cannot be used ({error}). Choose another one; 0 takes a free one.")
    with opened as server:
        print(f"Serving http://127.0.0.1:{server.server_port}/", flush=True)
        with suppress(KeyboardInterrupt):
            server.serve_forever()


def main() -> None:
    """The command `scripts/site`."""
    parser = argparse.ArgumentParser(prog="scripts/site", description=__doc__)
    parser.add_argument("--output", type=Path, default=CACHE / "site", help="the folder; default: %(default)s")
    parser.add_argument("--serve", type=int, metavar="PORT", help="then serve it to this host")
    chosen = parser.parse_args()
    logging.basicConfig(format="%(message)s")  # warnings end the build
    with tempfile.TemporaryDirectory(prefix="coop-site-") as pages:
        stage(Path(pages))
        try:
            make(Path(pages), chosen.output)
        except MkDocsException as error:
            sys.exit(f"The site was not built: {error}")
    print(f"The site is in {chosen.output}")
    if chosen.serve is not None:
        serve(chosen.output, chosen.serve)


if __name__ == "__main__":
    main()
