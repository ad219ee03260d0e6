"""A selection of the tests of ``tests/distributed`` between processes instead of threads.

Those tests hand each rank's function to ``run``. Here ``run`` is replaced: every process calls the
function as its own rank, and the results are gathered, so that each process checks all of them.
"""

import importlib
import sys
import warnings
from pathlib import Path

import minitorch.distributed as dist

sys.path.insert(0, str(Path(__file__).parents[2]))
warnings.simplefilter("ignore")

SELECTION = {
    "test_suite_unused": [
        ("test_forward_backward_optimizer", {}),
        ("test_unused_parameters_empty_on_one_rank", {"view": True}),
        ("test_control_flow_different_across_ranks_with_the_flag", {}),
        ("test_control_flow_same_across_ranks_without_the_flag", {}),
    ],
    "test_suite_graphs": [("test_different_graph_across_ranks", {})],
    "test_suite_outputs": [
        ("test_arbitrary_forward_return_value", {"kind": "nested", "options": {}}),
        ("test_multiple_outputs_multiple_backward", {}),
        ("test_static_graph_multi_forward", {"static_graph": True}),
        ("test_invalid_static_graph_used_becomes_unused", {}),
    ],
    "test_suite_accumulation": [
        (
            "test_accumulate_gradients_no_sync",
            {"view": True, "hook": None, "set_to_none": False},
        ),
        ("test_weight_sharing", {"view": False, "set_to_none": True, "static_graph": True}),
        ("test_checkpointing_once", {"how": True, "static_graph": False}),
    ],
    "test_suite_hooks": [
        ("test_noop_hook", {}),
    ],
    "test_suite_lifecycle": [
        ("test_failure_recovery", {}),
        ("test_inference", {}),
        ("test_sampler_with_dropping_loader_has_no_duplicates", {}),
    ],
    "test_join_ddp": [
        ("test_gradient_is_divided_by_all_or_by_the_active_ranks", {"initial": True}),
        ("test_2_r_plus_2_batches_equal_one_process_on_all_of_them", {}),
    ],
    "test_ddp_sparse": [("test_training_equals_dense", {"view": False, "option": {}})],
    "test_reported_gradients": [
        ("test_p112152_gradients_differ_across_ranks_after_one_step", {}),
        ("test_p53443_flush_without_another_input", {"view": False}),
        ("test_p104336_parameter_storage_is_replaced", {"view": True}),
    ],
    "test_reported_training": [
        ("test_p54059_p53979_validation_on_rank_0_through_the_inner_module", {}),
        ("test_determined_8915_models_of_different_size", {}),
    ],
}


def run(fn, world_size, *args, **options):
    """Like ``dist.run_local``, where this process is one of the ranks."""
    assert world_size == dist.get_world_size()
    results = [None] * world_size
    dist.all_gather_object(results, fn(dist.get_rank(), *args))
    return results


def main():
    dist.init_process_group()
    cases = importlib.import_module("distributed.ddp_cases")
    cases.run = run  # same_on_all calls it by this name
    for name, tests in SELECTION.items():
        module = importlib.import_module(f"distributed.{name}")
        module.run = run
        for test, arguments in tests:
            getattr(module, test)(world=dist.get_world_size(), **arguments)
            dist.barrier()
            if dist.get_rank() == 0:
                print(f"{test} passed", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
