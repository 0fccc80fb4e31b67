"""A page to draw on and watch: ``python -m lbq_hw.live --help``."""

from __future__ import annotations

import argparse
import json
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from lbq_hw import file, package, zoo
from lbq_hw.commands import ending
from lbq_hw.commands.arguments import add_dataset, reading, spoken
from lbq_hw.commands.parser import Parser
from lbq_hw.commands.progress import show_notes
from lbq_hw.datasets import DatasetError
from lbq_hw.datasets.fitting import Samples, load_samples
from lbq_hw.host.transport import DeviceError
from lbq_hw.live.answers import Live
from lbq_hw.live.machines import GoldenMachine, board
from lbq_hw.live.server import ADDRESS, LiveServer
from lbq_hw.network import Network

LISTEN = 8642
_SAMPLES = 200
_EPILOG = f"""
examples:
  python -m lbq_hw.live --model digits
      draw digits, or replay the test set, on the golden model
  python -m lbq_hw.live --model mnist --data folder/of/mnist
  python -m lbq_hw.live --package build/mnist/package --port /dev/ttyUSB1
      on a board; every answer is compared with the golden model
  python -m lbq_hw.live --package DIR --port NAME
      on a simulated board, with the NAME that lbq sim-board prints

The page is at http://{ADDRESS}:{LISTEN}/ and loads nothing from other sites. Only browsers of this
machine can reach it. Levels and events by layer come from the golden model.
"""


def main(argv: list[str] | None = None, *, prog: str = "python -m lbq_hw.live") -> int:
    args = _parser(prog).parse_args(argv)
    try:
        with _live(args) as live, _listening(live, args.listen) as server:
            if args.json:
                print(json.dumps({"url": server.url, **live.facts()}), flush=True)
            else:
                print(f"{live.network.name} on {live.machine.where}: {server.url}", flush=True)
            if args.open:
                webbrowser.open(server.url)
            server.serve_forever()
    except (DatasetError, DeviceError, OSError, ValueError, MemoryError) as error:
        return ending.refuse(error)
    except KeyboardInterrupt:
        return 0
    return 0


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Open a local page: draw, drop a picture or replay test images, and see the "
        "prediction, the logits, the levels layer by layer, events and time.",
        epilog=spoken(_EPILOG, prog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--model", help="an .lbq file or a name of the zoo, on the golden model")
    what.add_argument("--package", metavar="DIR", help="a package, on its board")
    parser.add_argument("--port", help="serial port of the board, with --package")
    add_dataset(parser)
    parser.add_argument(
        "--listen", type=int, default=LISTEN, metavar="N", help=f"port of the page ({LISTEN})"
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.add_argument("--json", action="store_true", help="print the address as a JSON object")
    return parser


@contextmanager
def _live(args: argparse.Namespace) -> Iterator[Live]:
    if args.port is not None and args.package is None:
        raise ValueError("--port needs the --package that is on the board")
    with ExitStack() as stack:
        if args.package is None:
            network = file.load(zoo.find(args.model))
            yield Live.of(network, GoldenMachine(network), _samples(args, network))
            return
        packed = package.read(args.package)
        if args.port is None:
            raise ValueError("give the --port of the board; lbq host --ports lists them")
        samples = _samples(args, packed.network)
        if samples is None and packed.selftest is not None:
            test = packed.selftest
            samples = Samples(name="self-test", images=test.images, labels=None)
        machine = stack.enter_context(board(packed, args.port))
        yield Live.of(packed.network, machine, samples)


def _samples(args: argparse.Namespace, network: Network) -> Samples | None:
    """Inputs to replay: the inputs that were asked for, or a dataset that needs no files."""
    name = args.dataset or network.meta.get("dataset")
    if args.data is None and name != "digits":
        if args.dataset is not None:
            raise ValueError(f"--dataset {args.dataset} needs --data, the folder of its files")
        return None
    samples = load_samples(
        network,
        dataset=args.dataset,
        data=args.data,
        limit=args.limit or _SAMPLES,
        reading=reading(args),
    )
    show_notes(samples.notes)
    return samples


@contextmanager
def _listening(live: Live, port: int) -> Iterator[LiveServer]:
    try:
        server = LiveServer(live, port)
    except OSError as error:
        raise ValueError(
            f"the server cannot listen on port {port} ({error.strerror}): give another with "
            "--listen"
        ) from error
    except OverflowError:
        raise ValueError(f"--listen must be 0 to 65535, not {port}") from None
    try:
        yield server
    finally:
        server.server_close()


if __name__ == "__main__":
    sys.exit(ending.run(main))
