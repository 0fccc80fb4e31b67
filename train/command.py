"""The command ``python -m train``: parses arguments, calls `train.loop.train`, reports errors."""

from __future__ import annotations

import argparse
import math
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path

from lbq_hw import datasets
from lbq_hw.commands import ending
from lbq_hw.commands.arguments import spoken
from lbq_hw.commands.parser import Parser
from lbq_hw.datasets import DatasetError
from lbq_hw.train import checkpoint
from lbq_hw.train.loop import train
from lbq_hw.train.settings import config, keys
from lbq_hw.train.settings.config import Config
from lbq_hw.train.settings.schema import ConfigError

EXAMPLES = """\
examples:
  python -m train --list
      the shipped configurations: small networks, and rows of the paper's CIFAR and DVS tables
  python -m train --config digits
      train on the embedded 8x8 digits, half a minute on a laptop, into runs/digits
  python -m train --config mnist --data folder/of/idx/files --set neuron.capacity=3
      another dataset and another number of burst levels; values are written as in TOML
  python -m train --config cifar10-resnet20-t2 --data folder/of/torchvision
      the root that torchvision was given, or in it cifar-10-batches-py, cifar-100-python, MNIST/raw
      or FashionMNIST/raw: its files are read as they are and checked by md5
  python -m train --config cifar10-resnet20-t2-fast --download --max-seconds 540
  python -m train --resume --out runs/cifar10-resnet20-t2-fast --max-seconds 540
      a long run in pieces: each stops at the end of an epoch, and the next continues there
  python -m train --config cifar10-resnet20-t2-fast --set data.validation=5000
      to compare recipes: test on 5000 held-out training images, the same in every run; the
      test images are not read
  python -m train --config mnist --set data.name=images --set data.size=28 \\
      --set data.channels=1 --data pictures --out runs/mine
      PNG and JPEG files of your own, in pictures/train/CLASS and pictures/test/CLASS; data.name=npz
      takes a file with the arrays train_images, train_labels, test_images and test_labels
  torchrun --nproc-per-node 4 -m train --config cifar10-resnet20-t2
      the same run on four GPUs, which share each batch

Then: python -m train.export runs/NAME writes the integer network, python -m train.analyze
runs/NAME draws the layer figures.
"""


def main(argv: list[str] | None = None, *, prog: str = "python -m train") -> int:
    parser = Parser(
        prog=prog,
        description="Train a network of burst neurons from a TOML configuration.",
        epilog=f"{spoken(EXAMPLES, prog)}\n{keys.listing()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", metavar="NAME", help="a shipped configuration, or a file")
    parser.add_argument("--list", action="store_true", help="show the shipped configurations")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="PATH",
        help="folder of the dataset's files, official ones or torchvision's (data/DATASET), or an "
        ".npz file of your own",
    )
    parser.add_argument(
        "--download", action="store_true", help="fetch dataset files that are missing"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change one key, such as train.epochs=5; may be repeated",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (runs/NAME)")
    parser.add_argument(
        "--resume", action="store_true", help="continue the run in --out, if there is one"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the run in --out")
    parser.add_argument(
        "--max-seconds",
        type=float,
        default=math.inf,
        metavar="S",
        help="stop before an epoch that would not end within S seconds; continue with --resume",
    )
    parser.set_defaults(prog=prog)
    args = parser.parse_args(argv)
    if args.list:
        names = config.shipped()
        width = max(map(len, names))
        print("\n".join(f"{name:{width}}  {text}" for name, text in names.items()))
        return 0
    rank = os.environ.get("RANK", "0")
    first = rank == "0"
    out: Path | None = args.out
    try:
        chosen = _config(args)
        out = out or Path("runs") / _run_name(args, chosen)
        chosen = _named(chosen, out)
        if first and args.resume and not (out / "last.json").is_file():
            print(f"{out} holds no checkpoint yet: a new run starts")
        result = train(
            chosen,
            out,
            data=args.data,
            download=args.download,
            resume=args.resume,
            overwrite=args.overwrite,
            max_seconds=args.max_seconds,
        )
    except (ValueError, OSError, DatasetError) as error:
        return ending.refuse(error if first else f"rank {rank}: {error}")
    except KeyboardInterrupt:
        tail = "no checkpoint was saved: the next run starts again"
        if out is not None and (out / "last.json").is_file():
            tail = f"go on with: {_again(args, out)}"
        return ending.interrupted(tail) if first else ending.INTERRUPTED
    if first:
        print(_closing(result, chosen, out, _again(args, out)))
    return 0


def _config(args: argparse.Namespace) -> Config:
    if args.config is not None:
        return config.load(args.config, args.set)
    if args.resume and args.out is not None:
        return config.override(checkpoint.index(args.out, "last")["config"], args.set)
    raise ConfigError("name a configuration with --config (--list shows them, --help explains)")


def _run_name(args: argparse.Namespace, chosen: Config) -> str:
    """The name of a run's folder: the configuration's name. On the user's own data, the name of a
    shipped configuration is not used, because it stands for other data."""
    if args.data is None or not _is_of_other_data(chosen):
        return chosen.name
    return args.data.resolve().stem


def _named(chosen: Config, out: Path) -> Config:
    """A run on the user's own data with a shipped configuration has the name of its folder.
    Characters that a network's name cannot have become hyphens."""
    if not _is_of_other_data(chosen):
        return chosen
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", out.resolve().name).lstrip("._+-")
    return replace(chosen, name=name or chosen.data.name)


def _is_of_other_data(chosen: Config) -> bool:
    return datasets.is_own(chosen.data.name) and chosen.name in config.shipped()


def _again(args: argparse.Namespace, out: Path) -> str:
    """The command that resumes the run, with all arguments that its checkpoint does not hold."""
    words = [*args.prog.split(), "--resume", "--out", str(out)]
    if args.data is not None:
        words += ["--data", str(args.data)]
    if math.isfinite(args.max_seconds):
        words += ["--max-seconds", f"{args.max_seconds:.10g}"]
    return shlex.join(words)


def _closing(result: dict, chosen: Config, out: Path, again: str) -> str:
    if not result["finished"]:
        return (
            f"stopped after epoch {result['epoch']} of {chosen.train.epochs}; go on with: {again}"
        )
    split = chosen.data.split
    return (
        f"{result[f'{split}_accuracy']:.2f} % of the {split} images at the last epoch "
        f"(best epoch, chosen on these images: {result['best_accuracy']:.2f} %), "
        f"{result['total_seconds']:.0f} s, in {out}"
    )
