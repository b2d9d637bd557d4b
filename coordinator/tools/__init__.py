"""What looks at a group or operates it: commands, views, exporter, page, audit, import.

Nothing outside imports it, except the command's entry point and the audit of sinks in Spark.
"""
