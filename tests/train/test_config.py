"""Configurations: what is shipped is sound, and what is wrong is said in one sentence."""

import json
import re
from pathlib import Path

import pytest
import torch

from lbq_hw import datasets
from lbq_hw.train import models
from lbq_hw.train.data.augment import Pipeline
from lbq_hw.train.settings import config, files
from lbq_hw.train.settings.config import Config
from lbq_hw.train.settings.schema import ConfigError

SHIPPED = list(files.shipped())


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def refused(message: str):
    return pytest.raises(ConfigError, match=f"^{re.escape(message)}$")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_configuration_describes_a_run_that_can_be_built(name):
    chosen = config.load(name)
    assert chosen.name == name
    assert chosen.description
    info = datasets.info(chosen.data.name)
    spec = chosen.data.spec(info.shape, static=not info.temporal)
    Pipeline(chosen.augment, spec, classes=info.classes, mean=(128,) * info.shape[0])
    with torch.device("meta"):
        model = models.build(
            chosen.model.name,
            neuron=chosen.neuron.build,
            timesteps=chosen.neuron.timesteps,
            input_shape=spec.shape,
            classes=info.classes,
            static=spec.static,
            **chosen.model.options(),
        )
    assert models.parameter_count(model) > 0


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_configuration_survives_json(name):
    chosen = config.load(name)
    assert Config.from_dict(json.loads(json.dumps(chosen.to_dict()))) == chosen


def test_the_small_networks_keep_to_their_boards():
    for name, most in {"digits": 10_000, "mnist": 20_000, "nmnist": 10_000}.items():
        chosen = config.load(name)
        info = datasets.info(chosen.data.name)
        model = models.build(
            chosen.model.name,
            neuron=chosen.neuron.build,
            timesteps=chosen.neuron.timesteps,
            input_shape=info.shape,
            classes=info.classes,
            **chosen.model.options(),
        )
        assert models.parameter_count(model) <= most


def test_the_list_of_shipped_configurations_has_a_line_for_each():
    listed = config.shipped()
    assert sorted(listed) == sorted(SHIPPED)
    assert all(text and "\n" not in text for text in listed.values())


def test_a_sweep_is_a_configuration_per_variant_and_none_itself():
    names = [path.stem for path in files.SHIPPED.glob("*.toml")]
    assert "cifar10-resnet20" in names
    assert "cifar10-resnet20" not in SHIPPED
    base, variant = config.load("cifar10-resnet20-t2"), config.load("cifar10-resnet20-v1")
    assert variant.name == "cifar10-resnet20-v1"
    assert config.differences(base.to_dict(), variant.to_dict()) == [
        "neuron.kind = 'lbq', not 'burst'",
        "neuron.surrogate = 'relsg', not 'box'",
        "neuron.learn_gamma = True, not False",
    ]
    sweep = files.SHIPPED / "cifar10-resnet20.toml"
    with refused(f"{sweep} is a sweep: name one of its variants, such as cifar10-resnet20-t1"):
        config.load(str(sweep))


def test_a_base_is_taken_over_and_changed_in_part():
    base, derived = config.load("cifar10-resnet20-t2"), config.load("cifar100-resnet20-t4")
    assert (derived.data.name, derived.neuron.timesteps) == ("cifar100", 4)
    assert (derived.augment.cutout, derived.augment.crop) == (12, base.augment.crop)
    assert derived.train == base.train


def test_both_fast_configurations_change_the_same_settings():
    ten, hundred = (config.load(f"{name}-resnet20-t2-fast") for name in ("cifar10", "cifar100"))
    paper = config.load("cifar100-resnet20-t2")
    assert hundred.train == ten.train != paper.train
    assert (hundred.data, hundred.augment) == (paper.data, paper.augment)


def test_the_papers_recipe_and_the_methods_defaults_are_in_the_configuration():
    chosen = config.load("cifar10-resnet20-t2")
    train, neuron = chosen.train, chosen.neuron
    assert (train.epochs, train.batch, train.lr, train.weight_decay) == (300, 64, 0.025, 5e-4)
    assert (train.optimizer, train.momentum, train.nesterov) == ("sgd", 0.9, True)
    assert (neuron.gamma0, neuron.eta0, neuron.alpha, neuron.beta) == (1.0, 0.0, 1.0, 0.5)
    assert (neuron.eps, neuron.surrogate, neuron.learn_beta) == (1e-4, "relsg", False)
    assert chosen.data.mean == ()


@pytest.mark.parametrize(
    ("name", "model", "timesteps"),
    [
        ("cifar10-dvs-resnet20", "resnet20", 10),
        ("dvs128-gesture-resnet19", "resnet19", 16),
        ("nmnist-resnet20-t10", "resnet20", 10),
        ("nmnist-t10", "nmnist", 10),
    ],
)
def test_the_papers_way_with_event_data_is_in_the_configurations(name, model, timesteps):
    chosen = config.load(name)
    train, neuron, augment = chosen.train, chosen.neuron, chosen.augment
    assert (chosen.model.name, neuron.timesteps, neuron.capacity) == (model, timesteps, 5)
    assert (train.epochs, train.batch, train.optimizer) == (300, 64, "adamw")
    assert (train.schedule, train.warmup_epochs, train.label_smoothing) == ("cosine", 10, 0.1)
    assert (augment.mixup, augment.cutmix, augment.cutout) == (0.5, 0.0, 0)
    if name != "nmnist-t10":  # whose learning rate is that of small networks
        assert (train.lr, train.weight_decay) == (1e-3, 0.06)


def test_overrides_are_toml_values_and_bare_words_are_strings():
    changes = [
        "train.lr=1",
        "train.decay_norms = true",
        "model.channels=[4, 8, 8]",
        "data.name=mnist",
    ]
    chosen = config.load("mnist", [*changes, 'train.amp="bf16"'])
    assert (chosen.train.lr, type(chosen.train.lr)) == (1.0, float)
    assert chosen.train.decay_norms
    assert chosen.model.channels == (4, 8, 8)
    assert chosen.train.amp == "bf16"


def test_a_file_may_have_a_shipped_base_or_one_beside_it(tmp_path):
    write(tmp_path / "mine.toml", 'base = "digits"\n[train]\nepochs = 3\n')
    path = write(tmp_path / "other.toml", 'base = "mine.toml"\n[neuron]\ncapacity = 9\n')
    chosen = config.load(path)
    assert (chosen.name, chosen.train.epochs, chosen.neuron.capacity) == ("other", 3, 9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("train.epoch=3", "train.epoch is not a configuration key (nearest: train.epochs)"),
        ("epochs=3", "epochs is not a configuration key (nearest: train.epochs)"),
        (
            "train.capacity=3",
            "train.capacity is not a configuration key (nearest: train.activity)",
        ),
        ("train.epochs=2.5", "train.epochs must be an integer, not 2.5"),
        ("train.epochs=true", "train.epochs must be an integer, not True"),
        ("train.lr=fast", "train.lr must be a number, not 'fast'"),
        ("train.nesterov=1", "train.nesterov must be true or false, not 1"),
        ("train.amp=fp8", "train.amp must be one of 'off', 'bf16', not 'fp8'"),
        ("data.validation=-1", "data.validation must be at least 0, not -1"),
        ("train.lr=0", "train.lr must be positive, not 0.0"),
        ("train.batch=0", "train.batch must be at least 1, not 0"),
        ("train.ema=1", "train.ema must be in [0, 1), not 1.0"),
        ("train.weight_bits=5", "train.weight_bits must be 0, 2, 3, 4, 6 or 8, not 5"),
        ("train.accumulate=3", "train.batch must be a multiple of train.accumulate, not 64"),
        ("train.adam_betas=[0.9]", "train.adam_betas must be a list of 2, not [0.9]"),
        ("train.warmup_epochs=999", "train.warmup_epochs must be at most train.epochs, not 999.0"),
        ("train.refine_epochs=-1", "train.refine_epochs must be at least 0, not -1"),
        ("train.refine_epochs=999", "train.refine_epochs must be at most train.epochs, not 999"),
        (
            "train.refine_epochs=3",
            "train.refine_epochs must be 0 where augment has no autoaugment, cutout, mixup or "
            "cutmix, not 3",
        ),
        ("train.sam_epochs=999", "train.sam_epochs must be at most train.epochs, not 999"),
        ("train.sam=0", "train.sam must be positive, not 0.0"),
        ("train.sam=0.2", "train.sam must be 0.1 where train.sam_epochs is 0, not 0.2"),
        ("model.channels=8", "model.channels must be a list, not 8"),
        ("model.channels=[8, 'x']", "model.channels[1] must be an integer, not 'x'"),
        ("model=digits", "model must be an object, not 'digits'"),
        ("model.width=3", "model.width is not an option of model.name = 'digits'"),
        ("neuron.timesteps=0", "neuron.timesteps must be at least 1, not 0"),
        ("neuron.sharpness=2.0", "neuron.sharpness is not an option of neuron.kind = 'lbq'"),
        ("augment.cutout=3", "augment: cutout must be even, not 3"),
        ("augment.shift=-1", "augment: shift must not be negative, not -1.0"),
        (
            "neuron.kind=lif",
            "neuron.kind must be one of lbq, burst, binary, ternary, i-lif, mlf, lm-ht, relu, "
            "quant-relu, not 'lif' (nearest: i-lif)",
        ),
        ("train.epochs", "an override must read key=value, not 'train.epochs'"),
    ],
)
def test_a_wrong_override_is_refused_in_one_sentence(change, message):
    with refused(message):
        config.load("digits", [change])


@pytest.mark.parametrize(
    ("choice", "change", "message"),
    [
        (
            "train.compile=reduce-overhead",
            "train.accumulate=2",
            "train.accumulate must be 1 with train.compile = 'reduce-overhead', not 2",
        ),
        (
            "train.optimizer=adamw",
            "train.momentum=0.5",
            "train.momentum must be 0.9 with train.optimizer = 'adamw', not 0.5",
        ),
        (
            "train.optimizer=adamw",
            "train.nesterov=false",
            "train.nesterov must be True with train.optimizer = 'adamw', not False",
        ),
        (
            "train.optimizer=sgd",
            "train.adam_betas=[0.8, 0.99]",
            "train.adam_betas must be (0.9, 0.999) with train.optimizer = 'sgd', not (0.8, 0.99)",
        ),
        (
            "neuron.kind=binary",
            "neuron.capacity=5",
            "neuron.capacity must be 1 with neuron.kind = 'binary', not 5",
        ),
        (
            "neuron.kind=ternary",
            "neuron.capacity=2",
            "neuron.capacity must be 1 with neuron.kind = 'ternary', not 2",
        ),
        (
            "neuron.surrogate=box",
            "neuron.eta0=1",
            "neuron.eta0 must be 0.0 with neuron.surrogate = 'box', not 1.0",
        ),
        (
            "neuron.surrogate=box",
            "neuron.learn_lambda=false",
            "neuron.learn_lambda must be True with neuron.surrogate = 'box', not False",
        ),
        (
            "neuron.kind=burst",
            "neuron.scale_step=true",
            "neuron.scale_step must be False with neuron.kind = 'burst', not True",
        ),
    ],
)
def test_a_key_without_effect_is_refused(choice, change, message):
    with refused(message):
        config.load("digits", [choice, change])


def test_a_size_of_frames_is_for_recordings_alone():
    assert config.load("nmnist", ["data.size=17"]).data.spec((2, 17, 17), static=False)
    with refused("data.size must be left out for still images, not 17"):
        config.load("digits", ["data.size=17"]).data.spec((1, 8, 8), static=True)


def test_a_missing_key_is_named(tmp_path):
    path = write(tmp_path / "mine.toml", '[data]\nname = "digits"\n[model]\nname = "digits"\n')
    with refused("train is missing from the configuration"):
        config.load(path)


def test_an_unknown_name_is_refused_with_the_nearest():
    with refused(
        "'digit' is neither a shipped configuration (nearest: digits) nor a file; "
        "`lbq train --list` shows what is shipped"
    ):
        config.load("digit")


def test_a_file_that_is_not_toml_is_refused(tmp_path):
    path = write(tmp_path / "mine.toml", "data = [\n")
    with pytest.raises(ConfigError, match=re.escape(f"{path} is not TOML: ")):
        config.load(path)


def test_a_circle_of_bases_is_refused(tmp_path):
    path = write(tmp_path / "mine.toml", 'base = "mine.toml"\n')
    with refused(f"{path} is its own base"):
        config.load(path)


def test_the_differences_of_two_runs_leave_out_what_does_not_change_the_result():
    old = config.load("digits")
    changes = ["train.lr=0.5", "train.shard_mib=3", "model.channels=[4, 4]", "train.fuse=true"]
    new = config.load("digits", changes)
    assert config.differences(old.to_dict(), new.to_dict()) == [
        "model.channels = [8, 16], not [4, 4]",
        f"train.lr = {old.train.lr}, not 0.5",
        "train.fuse = False, not True",
    ]
