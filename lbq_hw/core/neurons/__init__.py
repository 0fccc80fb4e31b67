"""The neurons: turn the sums of a tile into burst levels, or into logits."""
