"""The models that recorded schedules are checked against: their steps as TLA+, and forgeries of records."""
