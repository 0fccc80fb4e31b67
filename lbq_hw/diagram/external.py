"""The blocks that read weights from external memory: the data of docs/external-memory.svg."""

from __future__ import annotations

from lbq_hw.diagram.shapes import Block, Drawing, Frame, Wire

FRAMES = (
    Frame(name="System", x=12, y=12, width=1056, height=462),
    Frame(name="Accelerator", x=24, y=44, width=640, height=418),
)

BLOCKS = (
    Block(
        name="ExternalMemory",
        role=("an SDRAM: pages for the tape,", "slices for the host"),
        x=760,
        y=80,
        width=240,
        height=172,
        parts=(
            "TapePages",
            "Slices",
            "Calibrate",
            "SelfTest",
            "Sdram",
            "Sequencer",
            "RefreshTimer",
            "PageQueue",
        ),
        columns=2,
    ),
    Block(
        name="HostPort",
        role=("the host's view of both",),
        x=420,
        y=74,
        width=170,
        height=92,
        parts=("MemoryAccess", "Digest"),
    ),
    Block(
        name="TapeRunner",
        role=("items become writes,", "passes begin"),
        x=420,
        y=226,
        width=170,
        height=150,
        parts=("TapeReader", "TapePlace", "TapeWrites", "PassControl"),
    ),
    Block(name="Walker", role=("a pass is a layer",), x=60, y=80, width=150, height=76),
    Block(
        name="LaneArray",
        role=("weight rows, which are", "replaced while it adds"),
        x=60,
        y=262,
        width=150,
        height=80,
        parts=("SpreadRows",),
    ),
    Block(
        name="NeuronArray",
        role=("sums that wait for", "the next pass"),
        x=60,
        y=352,
        width=150,
        height=102,
        parts=("PartialSums", "SpreadMemory"),
    ),
)

WIRES = (
    Wire(
        source="ExternalMemory.bus",
        target="System.bus",
        label="pins",
        route=((1000, 170), (1068, 170)),
        at=(1016, 164),
    ),
    Wire(
        source="HostPort.host_memory",
        target="ExternalMemory.host",
        label="slices",
        route=((590, 120), (760, 120)),
        at=(680, 114),
    ),
    Wire(
        source="ExternalMemory.tape",
        target="TapeRunner.i",
        label="words",
        route=((880, 252), (880, 300), (590, 300)),
        at=(680, 294),
    ),
    Wire(
        source="HostPort.start",
        target="TapeRunner.start",
        label="start",
        route=((505, 166), (505, 226)),
        at=(512, 200),
    ),
    Wire(
        source="TapeRunner.records",
        target="Walker.i_record",
        label="RecordSlice",
        route=((420, 246), (300, 246), (300, 100), (210, 100)),
        at=(334, 241),
    ),
    Wire(
        source="TapeRunner.begin",
        target="Walker.i_start",
        label="begin",
        route=((420, 266), (270, 266), (270, 120), (210, 120)),
        at=(376, 261),
    ),
    Wire(
        source="Walker.o_done",
        target="TapeRunner.over",
        label="done",
        route=((210, 140), (240, 140), (240, 286), (420, 286)),
        at=(380, 281),
    ),
    Wire(
        source="TapeRunner.weights",
        target="LaneArray.weights",
        label="weights",
        route=((420, 310), (210, 310)),
        at=(362, 305),
    ),
    Wire(
        source="TapeRunner.params",
        target="NeuronArray.params",
        label="parameters",
        route=((420, 350), (330, 350), (330, 400), (210, 400)),
        at=(222, 395),
    ),
)

EXTERNAL = Drawing(
    title="The blocks that read weights from external memory",
    width=1080,
    height=486,
    frames=FRAMES,
    blocks=BLOCKS,
    wires=WIRES,
)
