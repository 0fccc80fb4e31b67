"""Training of burst-spiking networks in PyTorch, and their way to integers."""
