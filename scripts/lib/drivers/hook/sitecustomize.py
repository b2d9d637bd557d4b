"""Loaded by every Python of a driver that may be halted, since this folder is on its PYTHONPATH."""

from drivers import points

points.install()
