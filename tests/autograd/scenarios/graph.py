"""What a reader of the graph sees: nodes, names, edges."""

from __future__ import annotations

from .registry import leaf, scenario


@scenario
def node_names(t):
    x = t.ones(2, 3, requires_grad=True)
    results = [
        x + 1,
        x - x,
        2 - x,
        x * 2,
        x / 2,
        -x,
        x**2,
        x @ x.t(),
        x.exp(),
        x.log(),
        x.sqrt(),
        x.sum(),
        x.sum(1),
        x.mean(),
        x.mean(1),
        x.relu(),
        x.tanh(),
        x.sigmoid(),
        x.t(),
        x.transpose(0, 1),
        x.permute(1, 0),
        x.view(-1),
        x.reshape(6),
        x.unsqueeze(0),
        x.expand(4, 2, 3),
        x[0],
        x[:, 1:],
        x[[0, 1]],
        x.clone(),
        x.abs(),
        x.double(),
        x.max(),
        x.amax(1),
        x.clamp(0, 1),
        t.cat([x, x]),
        t.stack([x, x]),
        t.where(x > 0, x, x),
        x.var(),
        x.std(),
        x.cumsum(0),
        x.gather(0, t.tensor([[0, 0, 0]])),
        x.masked_fill(x > 0, 0),
        x.unbind(0)[0],
        x.split(1)[0],
        x.log1p(),
        x.expm1(),
        x.flip(0),
        x.roll(1, 0),
        x.tril(),
        x.sort().values,
        x.logsumexp(0),
        x.prod(),
        x.index_select(0, t.tensor([0])),
        t.maximum(x, x),
        x.pow(x),
        t.nn.functional.gelu(x),
        t.nn.functional.softplus(x),
        x.squeeze(),
        t.bmm(x[None], x.t()[None]),
        x.norm(),
    ]
    return [each.grad_fn.name() for each in results]


@scenario
def next_functions(t):
    x, w = leaf(t, 1.0), leaf(t, 2.0)
    y = x * 2 + w
    (first, i), (second, j) = y.grad_fn.next_functions
    return [
        first.name(),
        i,
        second.name(),
        j,
        second.variable is w,
        first.next_functions[0][0].name(),
        first.next_functions[0][0].variable is x,
    ]


@scenario
def leaf_facts(t):
    x = leaf(t, 1.0)
    y = x * 2
    return [x.is_leaf, y.is_leaf, x.grad_fn, x.requires_grad, y.requires_grad, y.detach().is_leaf]


@scenario
def view_facts(t):
    x = t.arange(6.0)
    v = x.view(2, 3)
    w = v.t()
    return [
        x._is_view(),
        v._is_view(),
        w._base is x,
        w.is_contiguous(),
        w.stride(),
        v[1].storage_offset(),
        x.data_ptr() == v.data_ptr(),
        w.contiguous().stride(),
        v.expand(2, 2, 3).stride(),
    ]
