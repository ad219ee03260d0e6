"""The rules of contextual decomposition, one file per kind of op.

=================  ====================================================================  ==========
file               what                                                                  source
=================  ====================================================================  ==========
``affine.py``      linear, convolutions, products; sums with constants                    ACD; ours
``pointwise.py``   ReLU and its relatives; smooth functions                               ACD; ours
``arithmetic.py``  add, multiply, divide, powers, casts, choices                          ours
``moving.py``      reshape, permute, index, cat, pad, embedding, in-place writes          linear
``pooling.py``     maximum, average and adaptive pooling; sums and means                  ACD
``norm.py``        batch and layer norm, softmax                                          ACD; ours
``recurrent.py``   LSTM, GRU, RNN, their cells, and zoneout                               CD; ours
=================  ====================================================================  ==========

"ours" means that the literature has no rule; these follow three principles. A product's relevant
part is the product of the relevant parts. A smooth function is split by the two-way Shapley value.
What only scales or selects (statistics of a norm, output gates, attention weights, conditions)
stays whole.
"""

from minitorch.interpret.rules import (
    affine,
    arithmetic,
    moving,
    norm,
    pointwise,
    pooling,
    recurrent,
)
