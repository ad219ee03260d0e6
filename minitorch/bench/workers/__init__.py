"""What runs inside the worker processes of the benchmarks; each file but the helpers is a script.

The scripts import each other by plain names, not through the package: PyTorch's interpreter, which
runs some of them, need not have minitorch's dependencies.
"""
