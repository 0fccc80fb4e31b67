"""The input side of training: raw images, batches made on the device, augmentation."""

from lbq_hw.train.data.feed import Feed, LoaderError
from lbq_hw.train.data.input_spec import InputSpec
from lbq_hw.train.data.loader import DeviceLoader
from lbq_hw.train.data.origin import Origin
from lbq_hw.train.data.split import held_out, hold_out, mean_levels, unseen
from lbq_hw.train.data.values import in_range

__all__ = [
    "DeviceLoader",
    "Feed",
    "InputSpec",
    "LoaderError",
    "Origin",
    "held_out",
    "hold_out",
    "in_range",
    "mean_levels",
    "unseen",
]
