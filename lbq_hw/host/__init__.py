"""The host's side: speak to a core through any transport, on a board or in a simulator."""

from lbq_hw.host.device import Counters, Device
from lbq_hw.host.line import LinkError, SerialTransport
from lbq_hw.host.memory import ExternalMemory
from lbq_hw.host.transport import DeviceError, Transport

__all__ = [
    "Counters",
    "Device",
    "DeviceError",
    "ExternalMemory",
    "LinkError",
    "SerialTransport",
    "Transport",
]
