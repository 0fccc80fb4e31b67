"""Turns a trained model into its integer network, and runs integer networks in torch.

In the order of use: `violations` (reasons why a model has no integer form), `fold`, `rounding` with
`exponents`, `layer` and `input` (the arithmetic), `assemble` (the whole network), `calibrate`
(scales chosen on inputs), `agreement` (compares network and model). `integer` runs a network in
torch, `device_counts` counts its operations.
"""
