"""The results page, made from JSON: ``python -m tools.results docs/results``.

A folder of results holds:

| file | from |
|---|---|
| paper.json | the paper's tables |
| runs/NAME.json | trained networks, one each: ``python -m tools.results FOLDER/runs --collect`` |
| ablation/NAME.json | neurons compared at one budget, from the same command |
| ablation-60/NAME.json | the same at another budget, here 60 epochs |
| measured/NAME.json | integer networks: ``python -m train.measure`` |
| bench-gpu.json | ``make bench-gpu ARGS="--json FILE"`` |
| profile-gpu.json | ``make bench-gpu ARGS="--profile --json FILE"`` |
| levels/NAME.json | use of levels in a run of the ablation: ``python -m train.analyze`` |
| curves.json | losses by epoch: ``python -m tools.results FOLDER/curves.json --collect`` |
| chosen.json | the images on which a run's recipe was chosen, if it was not fixed before |
| conversion.json | a converted ANN: ``python docs/examples/convert.py`` |
| notes.json | notes for readers besides the numbers: paragraphs by section |

For a missing file, the page has a sentence that says so.
"""
