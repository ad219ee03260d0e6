"""The generic Join context: who is counted, who shadows, who is last, and how it ends."""

from __future__ import annotations

import pytest
from distributed.ddp_cases import run

import minitorch as torch
import minitorch.distributed as dist
from minitorch.distributed.algorithms import Join, Joinable, JoinHook

worlds = pytest.mark.parametrize("world", [1, 2, 3, 4])


class CounterHook(JoinHook):
    def __init__(self, counter, bonus):
        self.counter = counter
        self.bonus = bonus

    def main_hook(self):
        self.counter.shadowed += 1
        dist.all_reduce(torch.zeros(1), group=self.counter.group)

    def post_hook(self, is_last_joiner):
        self.counter.was_last = is_last_joiner
        self.counter.total += self.bonus


class Counter(Joinable):
    """Counts, in each iteration, the active ranks: its collective is shadowed with a zero."""

    def __init__(self, group=None):
        super().__init__()
        self.group = group
        self.total = self.shadowed = 0
        self.was_last = None

    def __call__(self):
        Join.notify_join_context(self)
        ones = torch.ones(1)
        dist.all_reduce(ones, group=self.group)
        self.total += int(ones.item())

    def join_hook(self, **kwargs):
        return CounterHook(self, kwargs.get("bonus", 0))

    @property
    def join_device(self):
        return torch.device("cpu")

    @property
    def join_process_group(self):
        return self.group or dist.group.WORLD


def expected_total(rank, world, base, offset):
    """Rank j has base + j * offset inputs: W active ranks at first, then one fewer each time."""
    return world * base + sum((world - j) * offset for j in range(1, rank + 1))


@worlds
@pytest.mark.parametrize("offset", [0, 1, 2])
def test_main_hooks_shadow_every_iteration_of_the_others(world, offset):
    base = 3

    def rank(r):
        counter = Counter()
        with Join([counter]):
            for _ in range(base + r * offset):
                counter()
        return counter.total, counter.shadowed, counter.was_last

    for r, (total, shadowed, was_last) in enumerate(run(rank, world)):
        assert total == expected_total(r, world, base, offset)
        assert shadowed == (world - 1 - r) * offset
        assert was_last == (shadowed == 0)


@worlds
def test_three_joinables_take_turns(world):
    def rank(r):
        counters = [Counter() for _ in range(3)]
        with Join(counters, bonus=100):
            for _ in range(2 + r):
                for counter in counters:
                    counter()
        return [(counter.total, counter.shadowed) for counter in counters]

    for r, seen in enumerate(run(rank, world)):
        assert seen == [(expected_total(r, world, 2, 1) + 100, world - 1 - r)] * 3


@pytest.mark.parametrize("joinables", [1, 3])
@pytest.mark.parametrize("world", [2, 3])
def test_throw_on_early_termination(joinables, world):
    def rank(r):
        counters = [Counter() for _ in range(joinables)]
        with pytest.raises(RuntimeError) as caught, Join(counters, throw_on_early_termination=True):
            for _ in range(2 + r):
                for counter in counters:
                    counter()
        return [counter.total for counter in counters], str(caught.value)

    others = "Detected at least one rank that exhausted inputs. Throwing across all ranks."
    for r, (totals, message) in enumerate(run(rank, world)):
        assert totals == [2 * world] * joinables
        assert message == ("Rank 0 exhausted all inputs." if r == 0 else others)


@pytest.mark.parametrize("throw", [False, True])
def test_disabled_communicates_nothing_of_its_own(throw):
    def rank(r):
        counter = Counter()
        dist.reset_meter()
        with Join([counter], enable=False, throw_on_early_termination=throw):
            for _ in range(4):
                counter()
        return counter.total, counter.shadowed, dist.meter()["all_reduce"]["calls"]

    assert run(rank, 2) == [(8, 0, 4)] * 2


def test_one_all_reduce_of_four_bytes_counts():
    def rank(r):
        counter = Counter()
        dist.reset_meter()
        with Join([counter]):
            for _ in range(5):
                counter()
        return dist.meter()["all_reduce"]["calls"], dist.meter()["all_reduce"]["bytes_sent"]

    # 5 iterations of two, and the last count.
    assert run(rank, 2) == [(11, 44)] * 2


def test_an_exception_is_passed_on_and_configurations_come_back():
    def rank(r):
        counter = Counter()
        with pytest.raises(KeyError), Join([counter]):
            counter()
            raise KeyError
        before = counter.total
        counter()  # outside: communicates once
        return counter._join_config.enable, counter.shadowed, counter.total - before

    assert run(rank, 2) == [(False, 0, 2)] * 2


def test_nested_contexts_of_different_joinables():
    def rank(r):
        outer, inner = Counter(), Counter()
        with Join([outer]):
            for _ in range(2):
                outer()
                with Join([inner]):
                    for _ in range(1 + r):
                        inner()
        return outer.total, inner.total

    assert run(rank, 2) == [(4, 4), (4, 6)]


def test_group_other_than_the_default_one():
    def rank(r):
        group = dist.new_group([0, 2])
        if r == 1:
            return None
        counter = Counter(group)
        with Join([counter]):
            for _ in range(1 + r):
                counter()
        return counter.total, counter.was_last

    assert run(rank, 3) == [(2, False), None, (4, True)]


def test_wrong_joinables_are_refused():
    class Forgetful(Counter):
        def __init__(self):
            pass

    def rank(r):
        with pytest.raises(ValueError, match="requires at least one joinable"):
            Join([])
        with pytest.raises(AssertionError, match="calls the ``Joinable`` constructor"):
            Join([Forgetful()])
        with pytest.raises(AssertionError, match="calls the ``Joinable`` constructor"):
            Join.notify_join_context(Forgetful())
        other = dist.new_group([0, 1])
        with pytest.raises(ValueError, match="with multiple process groups"):
            Join([Counter(), Counter(other)])

    run(rank, 2)


def test_joinable_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Joinable()
