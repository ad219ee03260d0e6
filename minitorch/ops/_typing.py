"""The word for tensors in annotations.

A Tensor's ops are attached to it at run time (`methods.py`), where a type checker cannot see them;
to the checker a Tensor is therefore anything.
"""

from typing import Any

Tensor = Any
