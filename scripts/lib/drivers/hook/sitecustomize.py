"""Every Python of a driver that may be halted imports this module, because its folder is on the PYTHONPATH."""

from drivers import points

points.install()
