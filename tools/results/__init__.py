"""The results page, made from JSON: ``python -m tools.results docs/results``.

A folder of results holds:

| file | from |
|---|---|
| paper.json | the paper's tables |
| runs/NAME.json | trained networks, one each: ``python -m tools.results FOLDER/runs --collect`` |
| ablation/NAME.json | neurons compared at one budget, likewise; at another: ablation-60/NAME.json |
| measured/NAME.json | integer networks: ``python -m train.measure`` |
| bench-gpu.json | ``make bench-gpu ARGS="--json FILE"`` |
| profile-gpu.json | ``make bench-gpu ARGS="--profile --json FILE"`` |
| levels/NAME.json | what neurons of an ablation's run send: ``python -m train.analyze`` |
| curves.json | losses by epoch: ``python -m tools.results FOLDER/curves.json --collect`` |
| chosen.json | the images that a run's recipe was chosen on, where it was not fixed before |
| conversion.json | a converted ANN: ``python docs/examples/convert.py`` |
| notes.json | what a reader should know beside the numbers: paragraphs by section |

What is missing is left out of the page, with a sentence that says so.
"""
