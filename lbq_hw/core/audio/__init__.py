"""From the samples of a microphone to the levels that a network takes."""
