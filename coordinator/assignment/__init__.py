"""Which member owns which key ranges, and what one member gives up. Pure."""
