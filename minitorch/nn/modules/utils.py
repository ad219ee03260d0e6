"""``consume_prefix_in_state_dict_if_present``: from a wrapped model's keys to the bare model's."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def consume_prefix_in_state_dict_if_present(
    state_dict: MutableMapping[str, Any], prefix: str
) -> None:
    """Strip a prefix from the keys, in place.

    ``DistributedDataParallel`` puts ``"module."`` before every key of its ``state_dict``.

    Parameters
    ----------
    state_dict : dict
        What ``state_dict()`` or ``torch.load`` returned. Its order stays; keys without the prefix
        stay as they are. A ``_metadata`` attribute is renamed alike.
    prefix : str
        For example ``"module."``.

    Examples
    --------
    >>> from minitorch.nn.modules.utils import consume_prefix_in_state_dict_if_present
    >>> state = {"module.weight": 1, "step": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'weight': 1, 'step': 2}
    """
    renamed = {key.removeprefix(prefix): value for key, value in state_dict.items()}
    state_dict.clear()
    state_dict.update(renamed)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata:
        # Its keys are modules' names, so the wrapper's own are "" and the prefix without its dot.
        wrapped = prefix.rstrip(".")
        kept = {
            "" if key == wrapped else key.removeprefix(prefix): value
            for key, value in metadata.items()
            if key
        }
        metadata.clear()
        metadata.update(kept)
