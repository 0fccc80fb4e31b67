"""The host's side: its port to memories and registers, the link's frames, the UART."""
