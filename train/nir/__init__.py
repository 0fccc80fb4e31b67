"""NIR, the exchange format of spiking networks: graphs of other frameworks in, networks out.

``python -m train.nir FILE.nir --out net.lbq`` reads a graph: `node` maps each neuron to its
equations per timestep, `read` turns the graph into a module of this project's layers, and `inputs`
has the data for quantizing its weights and comparing the results. `write` turns a network into a
graph (``--to-nir``). What has no exact form is refused in one error with every place, reason and
remedy.
"""
