"""The neurons: the sums of a tile become burst levels, or logits."""
