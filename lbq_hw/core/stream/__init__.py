"""Parts that streams are made of: queues, a register slice, credits, pipeline stages."""
