"""Helpers around training: data loading, activation checkpointing, hook handles."""

from . import data

__all__ = ["data"]
