"""Building blocks for streams: queues, a register slice, credits, pipeline stages."""
