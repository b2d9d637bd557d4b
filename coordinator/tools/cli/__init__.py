"""The command `coop-kafka`: its verbs, and how tables look. Needs neither a JVM nor pyspark."""
