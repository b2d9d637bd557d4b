"""Tasks measure the cost of each slice and report it to the driver, one datagram for each report."""
