"""Images on their way into a network: raw inputs, batches made on the device, augmentation."""

from train.data.input_spec import InputSpec
from train.data.loader import DeviceLoader
from train.data.split import hold_out, mean_levels

__all__ = ["DeviceLoader", "InputSpec", "hold_out", "mean_levels"]
