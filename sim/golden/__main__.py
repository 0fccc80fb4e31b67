"""Write the golden tensors anew."""

from lbq_hw.sim.golden import NAMES, write

for name in NAMES:
    path = write(name)
    print(f"{path.name}: {path.stat().st_size:,} bytes")
