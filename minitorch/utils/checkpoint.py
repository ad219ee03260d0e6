"""PyTorch's long path to activation checkpointing, which lives with the autograd."""

from ..autograd import checkpoint, checkpoint_sequential

__all__ = ["checkpoint", "checkpoint_sequential"]
