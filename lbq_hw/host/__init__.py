"""The host's side: speak to a core through any transport, on a board or in a simulator."""

from lbq_hw.host.device import Counters, Device, DeviceError, Transport
from lbq_hw.host.line import LinkError, SerialTransport

__all__ = ["Counters", "Device", "DeviceError", "LinkError", "SerialTransport", "Transport"]
