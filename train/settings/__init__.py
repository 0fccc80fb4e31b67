"""The settings of a run: configurations and recipes, checked key by key.

| file | contents |
| --- | --- |
| config.py | a whole run: data, model, neuron, training, augmentation; each key with its meaning |
| files.py | the TOML files: bases, and sweeps of variants |
| recipe.py | the section ``train``, which `fit` takes too |
| schema.py | dictionaries to dataclasses; knows nothing of training |
| keys.py | the keys as ``--help`` lists them, with defaults and meanings |

The shipped configurations are in ``train/configs``.
"""
