"""The host's side: speak to a core through any transport, on a board or in a simulator."""

from lbq_hw.host.device import Counters, Device, DeviceError, Transport

__all__ = ["Counters", "Device", "DeviceError", "Transport"]
