"""Turns the samples of a microphone into the levels that a network takes."""
