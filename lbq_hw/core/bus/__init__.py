"""The core in a user's design: a bus slave, pixels from a stream, a tape from any memory."""
