"""The steps of first light, in order."""

from __future__ import annotations

from lbq_hw.bring_up import answers, loading, plug
from lbq_hw.bring_up.walk import Step

STEPS = (
    Step(name="usb", title="the board on the USB", look=plug.usb),
    Step(name="port", title="its serial port", look=plug.port, needs=("usb",)),
    Step(name="rights", title="who may use it", look=plug.rights, needs=("usb",)),
    Step(name="tool", title="the program that loads a bitstream", look=loading.tool),
    Step(
        name="load",
        title="loading the bitstream",
        look=loading.load,
        needs=("usb", "rights", "tool"),
        packed=True,
    ),
    Step(
        name="link",
        title="the core's answer",
        look=answers.link,
        needs=("port", "rights", "load"),
        packed=True,
    ),
    Step(
        name="memory",
        title="the external memory",
        look=answers.memory,
        needs=("link",),
        packed=True,
    ),
    Step(
        name="self-test",
        title="inputs with known logits",
        look=answers.selftest,
        needs=("link", "memory"),
        packed=True,
    ),
    Step(
        name="rate",
        title="the rate of the link",
        look=answers.rate,
        needs=("link",),
        packed=True,
    ),
)
