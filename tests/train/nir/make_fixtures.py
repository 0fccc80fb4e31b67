"""Makes sinabs.nir and sinabs.npz: a network of sinabs, and its spikes on some recordings.

sinabs wants nir 1.0.4 and has no place beside the other frameworks, so what it writes is kept here:

    python -m venv V && V/bin/pip install sinabs==3.1.3
    V/bin/python tests/train/nir/make_fixtures.py
"""

from __future__ import annotations

from pathlib import Path

import nir
import numpy as np
import sinabs.layers as sl
import torch
from sinabs.activation import SingleSpike
from sinabs.nir import to_nir
from torch import nn

HERE = Path(__file__).parent
TIMESTEPS, SAMPLES, SHAPE = 12, 6, (2, 9, 9)


def main() -> None:
    torch.manual_seed(0)

    def spiking() -> nn.Module:
        return sl.IAFSqueeze(batch_size=SAMPLES, spike_fn=SingleSpike, min_v_mem=None)

    net = nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, padding=1, bias=False),
        spiking(),
        sl.SumPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 12),
        spiking(),
        nn.Linear(12, 3),
        spiking(),
    )
    with torch.no_grad():
        for layer, factor in ((0, 4.0), (4, 3.0), (6, 2.0)):
            net[layer].weight.mul_(factor)
        frames = (torch.rand(SAMPLES, TIMESTEPS, *SHAPE) < 0.3).float()
        spikes = net(frames.flatten(0, 1)).unflatten(0, (SAMPLES, TIMESTEPS))
        graph = to_nir(net, frames.flatten(0, 1))
    # sinabs leaves shapes open, and h5py writes no None.
    graph.nodes["0"].input_shape = SHAPE[1:]
    graph.nodes["3"].input_type = {"input": np.array([4, 2, 2])}
    nir.write(HERE / "sinabs.nir", graph)
    np.savez_compressed(
        HERE / "sinabs.npz", frames=frames.numpy().astype(np.uint8), spikes=spikes.numpy() > 0
    )


if __name__ == "__main__":
    main()
