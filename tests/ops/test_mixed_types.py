"""Numbers and tensors of other types: in which type the result is computed, and what is refused."""

from __future__ import annotations

import pytest

import minitorch as torch


def test_copy_of_a_number():
    assert torch.zeros(2, 2).copy_(2).tolist() == [[2.0, 2.0]] * 2
    assert torch.zeros(2, dtype=torch.int64).copy_(1.5).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("a", "b", "alpha", "added", "subtracted"),
    [
        (torch.uint8, torch.uint8, 3, 1, 251),  # modulo 256, in the type of both
        (torch.int32, torch.uint8, 3, 257, 251),
        (torch.float32, torch.int64, 0.5, 254.5, 253.5),
    ],
)
def test_alpha_scales_in_the_type_of_both(a, b, alpha, added, subtracted):
    x, y = torch.tensor([254]).to(a), torch.tensor([1]).to(b)
    for function, value in ((torch.add, added), (torch.sub, subtracted)):
        got = function(x, y, alpha=alpha)
        assert got.dtype is a
        assert got.item() == value


def test_alpha_of_bool_and_of_whole_numbers():
    yes, one = torch.tensor([True]), torch.tensor([1])
    assert torch.add(yes, yes, alpha=2).tolist() == [True]
    assert torch.add(torch.tensor([254], dtype=torch.uint8), yes, alpha=2).tolist() == [0]
    with pytest.raises(RuntimeError, match="with two bool tensors is not supported"):
        torch.sub(yes, yes, alpha=2)
    for subtract in (torch.sub, lambda a, b: torch.sub(a, b, alpha=2)):
        for a, b in ((one, yes), (yes, one)):
            with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
                subtract(a, b)
    with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
        torch.add(one, one, alpha=0.5)
