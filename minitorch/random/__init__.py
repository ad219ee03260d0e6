"""Random numbers, of two kinds that never mix.

``manual_seed`` and everything PyTorch has (``generator.py``, ``factories.py``) runs on a Mersenne
Twister that reproduces PyTorch's CPU streams (``mt19937.py`` for the words, ``streams.py`` for what
they become). The methods of this library draw from ``addressed.py`` instead, by address, and leave
the user's stream alone.
"""

from .addressed import (
    addressed_bits,
    addressed_integers,
    addressed_normal,
    addressed_permutation,
    addressed_uniform,
)
from .generator import (
    Generator,
    default_generator,
    default_state,
    fork_rng,
    get_rng_state,
    inherit_default_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "Generator",
    "addressed_bits",
    "addressed_integers",
    "addressed_normal",
    "addressed_permutation",
    "addressed_uniform",
    "default_generator",
    "default_state",
    "fork_rng",
    "get_rng_state",
    "inherit_default_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]
