"""What a Tensor can do: each op stands beside its gradient."""
