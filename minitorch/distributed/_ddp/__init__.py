"""The rooms behind ``DistributedDataParallel`` (``../ddp.py``), in the order of a step.

==================== ==========================================================================
at construction      ``options`` (which arguments), ``module`` (what is wrapped), ``building``,
                     ``verify`` (do the ranks agree?), ``bucketing`` (first layout)
before forward       ``buffers``, ``buffer_sync`` (broadcasts), ``join`` (uneven inputs)
after forward        ``graph`` (unused parameters), ``mixed_precision``
during backward      ``reducer`` (gradients in and out), ``slots`` (where they live), ``sparse``,
                     ``delayed``, ``watch`` (gradients that stay local)
what is sent         ``hooks``, ``hook_registration``, ``builtin_hooks``
without a backward   ``accumulation`` (no_sync, sync), ``flush``
before the step      ``step_check`` (is the reduction finished?), ``consistency`` (checksums)
what it took         ``logging``
==================== ==========================================================================

The state machine itself is C++: ``csrc/reducer/``.
"""
