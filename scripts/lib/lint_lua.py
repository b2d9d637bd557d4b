"""Runs luacheck on the Lua of the store as Redis runs it: each verb behind the files that all verbs share.

So luacheck sees a local that shadows a shared function. A shared function is unused only if no verb uses it.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from broker_jars import ROOT
from coordinator.redis.client import SHARED

LUACHECK = shutil.which("luacheck")
NO_LUACHECK = "no luacheck on this host's PATH: apt-get install lua-check, as .ci/run does"
LUA = ROOT / "coordinator" / "redis" / "lua"
_SETTINGS = ROOT / "conf" / "luacheck.lua"
_FINDING = re.compile(r"(?:.*/)?(?P<verb>\w+)\.lua:(?P<line>\d+):(?P<column>\d+): (?P<what>.*)")
_EARLIER = re.compile(r"on line (\d+)")
_SHARED = tuple(f"shared/{name}.lua" for name in SHARED)


def findings(lua: Path = LUA) -> list[str]:
    """The findings of luacheck in the verbs of a folder, as `file:line:column: what`."""
    shared = {name: _text(lua / name) for name in _SHARED}
    verbs = {file.name: _text(file) for file in sorted(lua.glob("*.lua"))}
    with tempfile.TemporaryDirectory(prefix="coop-kafka-lua-") as folder:
        for name, text in verbs.items():
            Path(folder, name).write_text("".join((*shared.values(), text)), encoding="utf-8")
        found = Counter(_placed(finding, shared | verbs) for finding in _luacheck(Path(folder)))
    return sorted(each for each, times in found.items() if not each.startswith(_SHARED) or times == len(verbs))


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _luacheck(folder: Path) -> list[re.Match[str]]:
    options = ("--config", str(_SETTINGS), "--formatter", "plain", "--codes", "--no-color")
    ran = subprocess.run([LUACHECK or "luacheck", str(folder), *options], capture_output=True, text=True, check=False)
    if ran.returncode > 2:  # neither a warning nor a syntax error: luacheck itself failed
        raise RuntimeError(ran.stdout + ran.stderr)
    return [finding for line in ran.stdout.splitlines() if (finding := _FINDING.fullmatch(line))]


def _placed(finding: re.Match[str], texts: dict[str, str]) -> str:
    """A finding with line numbers of the files instead of the joined text."""
    parts = (*_SHARED, f"{finding['verb']}.lua")
    lines = [f"{part}:{n}" for part in parts for n in range(1, texts[part].count("\n") + 1)]
    what = _EARLIER.sub(lambda earlier: f"in {lines[int(earlier[1]) - 1]}", finding["what"])
    return f"{lines[int(finding['line']) - 1]}:{finding['column']}: {what}"


def main() -> int:
    """Print the findings; 0 if there are none, else 1."""
    found = findings()
    print("\n".join(found) or "No finding in the Lua of the store.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
