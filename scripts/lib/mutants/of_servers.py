"""Faults of the servers for a user's test."""

from mutants.fault import Edit, Fault

_FOLDER, _TESTS = "spark_coop_source/servers/", "tests/spark_coop_source/servers/"

FAULTS = (
    Fault(
        "the folder of a killed test stays",
        (Edit(f"{_FOLDER}keeper.py", "            shutil.rmtree(folder, ignore_errors=True)\n", ""),),
        (f"{_TESTS}test_servers.py",),
    ),
    Fault(
        "a Redis that is named is not used",
        (Edit(f"{_FOLDER}servers.py", 'redis = os.environ.get("COOP_REDIS") or ', "redis = "),),
        (f"{_TESTS}test_servers.py",),
    ),
    Fault(
        "jars that another process has just fetched are replaced under its broker",
        (Edit(f"{_FOLDER}java.py", "            if self.present():\n                return\n", ""),),
        (f"{_TESTS}test_java.py",),
    ),
)
