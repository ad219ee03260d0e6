"""Gradients that stay local although the model is wrapped: warned about once, with what to do, and
never without reason.
"""

from __future__ import annotations

import warnings

import pytest
from distributed.ddp_cases import DDP, Branches, Scale, TwoOutputs, a, b, grad, run

import minitorch as torch
from minitorch import nn

UNARMED = "in a backward that DistributedDataParallel does not average"
UNFINISHED = "Expected to have finished reduction in the prior iteration before starting a new one."


def told(fn, world=2):
    """Texts of the warnings that ``fn(rank)`` gave, over all ranks, and what it returned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = run(fn, world)
    return [str(each.message) for each in caught], results


def quiet(fn, world=2):
    texts, results = told(fn, world)
    assert texts == []
    return results


def test_module_forward_is_told_once_per_wrapper_and_says_what_to_do():
    def rank(r):
        ddp = DDP(Branches())
        for _ in range(3):
            ddp.module(b(r)).sum().backward()

    texts, _ = told(rank)
    assert len(texts) == 2  # one per rank
    for text in texts:
        assert UNARMED in text
        assert "ddp(x) and not ddp.module(x)" in text
        assert "ddp.sync()" in text


def test_second_backward_of_one_forward():
    def rank(r):
        ddp = DDP(Scale())
        loss = ddp(a(r)).sum()
        loss.backward(retain_graph=True)
        loss.backward()

    texts, _ = told(rank)
    assert len(texts) == 2
    assert all(UNARMED in text for text in texts)


class TestNoFalseAlarm:
    def test_dropped_forward_arms_the_module_forward(self):
        def rank(r):
            ddp = DDP(Scale())
            ddp(a(r))
            ddp.module(b(r)).sum().backward()
            return grad(ddp.module.p)

        assert quiet(rank) == [15.0, 15.0]

    def test_two_models_in_turn(self):
        def rank(r):
            models = [DDP(Scale()), DDP(Scale())]
            for step in range(4):
                models[step % 2](a(r)).sum().backward()
            for ddp in models:
                ddp(a(r))
            for ddp in models:
                ddp(a(r)).sum().backward()

        quiet(rank)

    @pytest.mark.parametrize("where", ["both inside", "forward inside", "backward inside"])
    def test_no_sync(self, where):
        def rank(r):
            ddp = DDP(Scale())
            if where == "backward inside":
                out = ddp(a(r))
                with ddp.no_sync():
                    out.sum().backward()
                return grad(ddp.module.p)
            with ddp.no_sync():
                out = ddp(a(r))
                if where == "both inside":
                    out.sum().backward()
                    ddp.module(a(r)).sum().backward()
                    return grad(ddp.module.p)
            out.sum().backward()
            return grad(ddp.module.p)

        expected = {
            "both inside": [2.0, 4.0],
            "forward inside": [1.0, 2.0],
            "backward inside": [1.5, 1.5],
        }
        assert quiet(rank) == expected[where]

    def test_no_sync_with_an_output_that_hides_its_tensors(self):
        class Box:
            def __init__(self, tensor):
                self.tensor = tensor

        class Hiding(Scale):
            def forward(self, x):
                return Box(super().forward(x))

        def rank(r):
            ddp = DDP(Hiding())
            with ddp.no_sync():
                out = ddp(a(r))
            out.tensor.sum().backward()
            return grad(ddp.module.p)

        assert quiet(rank) == [1.0, 2.0]

    def test_disjoint_outputs_in_two_backwards(self):
        def rank(r):
            ddp = DDP(TwoOutputs())
            for out in ddp(a(r)):
                out.sum().backward()

        quiet(rank)

    def test_two_wrappers_of_one_module(self):
        def rank(r):
            module = Scale()
            first, second = DDP(module), DDP(module)
            second(a(r)).sum().backward()
            assert grad(module.p) == 1.5
            with second.no_sync():
                second(a(r)).sum().backward()
            assert first.module is second.module
            return grad(module.p)

        assert quiet(rank) == [2.5, 3.5]

    def test_removed_hooks(self):
        def rank(r):
            ddp = DDP(Scale())
            ddp._remove_autograd_hooks()
            ddp.module(a(r)).sum().backward()

        quiet(rank)

    def test_gradient_penalty_with_respect_to_the_input(self):
        def rank(r):
            ddp = DDP(Scale())
            x = a(r).requires_grad_()
            torch.autograd.grad(ddp(x).sum(), [x])
            ddp(x).sum().backward()
            return grad(ddp.module.p)

        assert quiet(rank) == [1.5, 1.5]

    def test_training_evaluation_and_a_backward_that_raised(self):
        def rank(r):
            ddp = DDP(nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1)))
            x = torch.arange(4.0).reshape(4, 1) + r
            for _ in range(2):
                ddp(x).sum().backward()
            ddp.eval()
            with torch.no_grad():
                ddp(x)
                ddp.module(x)
            ddp.train()
            out = ddp(x)
            handle = out.register_hook(lambda _: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                out.sum().backward()
            handle.remove()
            ddp(x).sum().backward()

        quiet(rank)


def test_autograd_grad_of_parameters():
    def rank(r):
        ddp = DDP(TwoOutputs())
        for _ in range(2):
            out_p, out_q = ddp(a(r))
            torch.autograd.grad(out_p.sum() + out_q.sum(), [ddp.module.q])
        ddp(a(r))[0].sum()

    texts, _ = told(rank)
    assert len(texts) == 2
    assert all("this rank's own gradient of q:" in text for text in texts)
    assert all("dist.all_reduce" in text for text in texts)


def test_freeze_after_wrapping_warns_at_forward_and_raises_at_the_step():
    """PyTorch says nothing until the next forward raises."""

    def rank(r):
        ddp = DDP(Branches())
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        ddp.module.q.requires_grad_(False)
        ddp(a(r)).sum().backward()
        with pytest.raises(RuntimeError, match=UNFINISHED):
            optimizer.step()

    texts, _ = told(rank)
    assert len(texts) == 2
    assert all(text.startswith("q required grad when DistributedDataParallel") for text in texts)
    assert all("wrap the module again after freezing" in text for text in texts)


def test_a_frozen_discriminator_passes_gradients_on_without_a_warning():
    """All parameters of a wrapper are frozen while another one is trained through it."""

    def rank(r):
        generator, discriminator = DDP(Scale(2.0)), DDP(Scale(3.0))
        optimizers = [
            torch.optim.SGD(ddp.parameters(), lr=0.1) for ddp in (generator, discriminator)
        ]
        found = []
        for _ in range(2):
            discriminator.module.p.requires_grad_(False)
            optimizers[0].zero_grad()
            discriminator(generator(a(r))).sum().backward()
            found.append(grad(generator.module.p))
            discriminator.module.p.requires_grad_(True)
            optimizers[1].zero_grad()
            discriminator(a(r)).sum().backward()
            found.append(grad(discriminator.module.p))
        for optimizer in optimizers:
            optimizer.step()
        return found

    assert quiet(rank) == [[4.5, 1.5] * 2] * 2


@pytest.mark.filterwarnings("ignore:find_unused_parameters=True was specified")
def test_freeze_with_find_unused_parameters_is_fine():
    def rank(r):
        ddp = DDP(Branches(), find_unused_parameters=True)
        ddp.module.q.requires_grad_(False)
        ddp(a(r)).sum().backward()
        return grad(ddp.module.p), grad(ddp.module.q)

    assert quiet(rank) == [(1.5, None)] * 2


def test_unfreeze_after_wrapping():
    """As in PyTorch its gradient stays local: p 1.5 everywhere, q 1 and 2."""

    def rank(r):
        module = Branches()
        module.q.requires_grad_(False)
        ddp = DDP(module)
        module.q.requires_grad_(True)
        for _ in range(2):
            ddp.zero_grad()
            ddp(a(r)).sum().backward()
        return grad(module.p), grad(module.q)

    texts, results = told(rank)
    assert results == [(1.5, 1.0), (1.5, 2.0)]
    assert len(texts) == 2
    assert all(text.startswith("q did not require grad when Distributed") for text in texts)
    assert all("wrap the module again after unfreezing" in text for text in texts)


def test_create_graph():
    class Square(Scale):
        def forward(self, x):
            return self.p * self.p * x

    def rank(r):
        ddp = DDP(Square())
        ddp(a(r)).sum().backward(create_graph=True)
        return grad(ddp.module.p)

    texts, results = told(rank)
    assert results == [3.0, 3.0]
    assert len(texts) == 2
    assert all("create_graph=True is not well-supported" in text for text in texts)


def test_ignored_parameters_may_be_frozen_and_unfrozen():
    def rank(r):
        module = Branches()
        module._ddp_params_and_buffers_to_ignore = ["q"]
        ddp = DDP(module)
        for flag in (False, True):
            module.q.requires_grad_(flag)
            ddp(a(r)).sum().backward()

    quiet(rank)
