"""The core in a design of one's own: a bus, pixels from a stream, a tape from any memory."""
