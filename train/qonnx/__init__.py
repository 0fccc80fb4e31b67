"""QONNX, the exchange format of quantized ANNs: graphs of uniform quantizers with ReLU in.

    model = read("net.onnx", spec)                       # in this project's layers, T = 1
    network = train.export.integer_network(model, spec)

`graph` turns the nodes of a file into a module, `layers` makes the layer of each node, `quantizers`
reads Quant nodes. Brevitas writes such files with `export_qonnx`. What has no exact form is refused
with place, reason and remedy.
"""

from __future__ import annotations

from lbq_hw.train.qonnx.graph import QonnxError, read

__all__ = ["QonnxError", "read"]
