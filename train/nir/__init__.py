"""NIR, the exchange format of spiking networks: graphs of other frameworks in, networks out.

``python -m train.nir FILE.nir --out net.lbq`` reads a graph: `node` says what each neuron computes
per timestep, `read` makes a module of this project's layers of the graph, `inputs` has the data on
which its weights are quantized and compared. `write` says a network as a graph (``--to-nir``). What
cannot be said is refused, with every place, reason and mend.
"""
