"""From a trained model to its integer network, and that network in torch.

In the order of use: `violations` (what has no integer form), `fold`, `rounding` with `exponents`,
`layer` and `input` (the arithmetic), `assemble` (the whole network), `calibrate` (scales that are
chosen on inputs), `agreement` (does it do what the model does). `integer` runs a network,
`device_counts` counts what it does.
"""
