"""What each slice costs its task, measured and told to the driver by one datagram."""
