"""**What** is sent? Other answers than "the whole gradient".

* ``half.py`` - gradients as float16 or bfloat16: half the bytes
"""
