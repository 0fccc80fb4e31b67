"""The scanner: turns ranges of plane words into events, one event per set bit."""
