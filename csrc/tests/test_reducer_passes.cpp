// The passes that are not an ordinary backward: learning a static graph, flushing without a
// backward; and buckets that are not sent, or hold a sparse gradient.
#include "reducer_fixture.hpp"

using namespace reducer_test;

namespace {

std::vector<std::int32_t> map_of(Reducer& reducer) {
  const auto map = reducer.used_map();
  return {map.begin(), map.end()};
}

// Fires the hooks of `fired` in order; a complete gradient, 2 on every element, is marked ready.
void fire(Reducer& reducer, const std::vector<std::size_t>& fired) {
  for (const std::size_t i : fired) {
    reducer.mark_used(i);
    const auto g = gradient(reducer.parameters()[i].elements, 2);
    if (reducer.mark_fired(i)) reducer.mark_ready(i, g.data());
  }
}

// What the caller does at the end of a learning pass.
void end_learning(Reducer& reducer) {
  for (const std::size_t i : reducer.missing()) {
    const auto g = gradient(reducer.parameters()[i].elements, 2);
    reducer.mark_ready(i, g.data());
  }
}

}  // namespace

TEST(a_static_graph_is_learned_in_the_first_pass_and_rebuilt_after_the_second) {
  on_ranks(2, [](int, const std::shared_ptr<Group>& group) {
    Reducer reducer = Fixture().make(group, {.static_graph = true});
    // Parameter 1 fires twice per pass, 2 never.
    const std::vector<std::size_t> fired = {1, 0, 1};
    for (int step = 0; step < 4; ++step) {
      reducer.ensure_finished();
      CHECK_EQUAL(reducer.rebuild_buckets(), step == 2);
      reducer.prepare_for_backward();
      CHECK_EQUAL(reducer.learning(), step == 0);
      if (step > 0) {
        CHECK_EQUAL(reducer.never_fired(), (std::vector<std::size_t>{2}));
        reducer.mark_unused_ready(2, nullptr);
      }
      fire(reducer, fired);
      if (step == 0) {
        CHECK_EQUAL(reducer.launched(), 0);
        end_learning(reducer);
      }
      CHECK(reducer.draining());
      reducer.begin_draining();
      for (std::size_t b = 0; b < 3; ++b) reducer.wait_bucket(b);
      CHECK_EQUAL(reducer.unused_here(), (std::vector<std::size_t>{2}));
      CHECK(!reducer.used_anywhere(2));
      CHECK_EQUAL(value_in(reducer, 1), 2);
      reducer.finish();
      CHECK_EQUAL(map_of(reducer), (std::vector<std::int32_t>{2, 2, 0}));
    }
    // In the order of the second pass: 2 at its start, then 0, and 1 with its second firing.
    Indices members;
    for (const Bucket& bucket : reducer.buckets()) members.push_back({bucket.slots()[0].parameter});
    CHECK_EQUAL(members, (Indices{{2}, {0}, {1}}));
  });
}

TEST(a_static_graph_that_changes_is_told) {
  on_ranks(1, [](int, const std::shared_ptr<Group>& group) {
    Reducer reducer = Fixture().make(group, {.static_graph = true});
    reducer.prepare_for_backward();
    fire(reducer, {1, 0});
    end_learning(reducer);
    drain(reducer);

    reducer.prepare_for_backward();
    const std::string more = check::message_of<std::runtime_error>([&] { fire(reducer, {1, 1}); });
    CHECK_CONTAINS(more, "Your training graph has changed in this iteration");
    CHECK_CONTAINS(more, "the gradient of parameter 1, second, arrived more often");

    reducer.prepare_for_backward();
    reducer.mark_unused_ready(2, nullptr);
    fire(reducer, {1});
    reducer.mark_pass_ended();
    const std::string fewer =
        check::message_of<std::runtime_error>([&] { reducer.ensure_finished(); });
    CHECK_CONTAINS(fewer, kUnfinished);
    CHECK_CONTAINS(fewer, "is used in first iteration, but then got unused in the second");
    CHECK(fewer.ends_with(": first"));
  });
}

TEST(a_learning_pass_that_raised_is_learned_anew) {
  on_ranks(1, [](int, const std::shared_ptr<Group>& group) {
    Reducer reducer = Fixture().make(group, {.static_graph = true});
    reducer.prepare_for_backward();
    fire(reducer, {0, 0, 2});  // and no end of the pass
    CHECK(!reducer.unfinished().empty());
    reducer.ensure_finished();
    reducer.prepare_for_backward();
    fire(reducer, {1});
    end_learning(reducer);
    drain(reducer);
    CHECK_EQUAL(reducer.never_fired(), (std::vector<std::size_t>{0, 2}));
  });
}

TEST(a_rank_that_shadows_the_first_pass_learns_in_its_own) {
  on_ranks(2, [](int rank, const std::shared_ptr<Group>& group) {
    Reducer reducer = Fixture().make(group, {.static_graph = true});
    for (int step = 0; step < 4; ++step) {
      reducer.rebuild_buckets();
      if (rank == 0 && step == 0) {
        reducer.prepare_for_shadow();
        for (const std::size_t i : reducer.missing()) reducer.mark_ready(i, nullptr);
        drain(reducer);
        CHECK(reducer.learning());
        continue;
      }
      reducer.prepare_for_backward();
      const bool learning = reducer.learning();
      CHECK_EQUAL(learning, step == (rank == 0 ? 1 : 0));
      if (!learning) reducer.mark_unused_ready(2, nullptr);
      fire(reducer, {1, 0, 1});
      if (learning) end_learning(reducer);
      drain(reducer);
      CHECK_NEAR(value_in(reducer, 1), step == 0 ? 1 : 2, 1e-6);
      CHECK_EQUAL(map_of(reducer), (std::vector<std::int32_t>{1, 1, 0}));
    }
  });
}

TEST(a_rank_that_learns_later_may_not_use_what_nobody_used) {
  on_ranks(2, [](int rank, const std::shared_ptr<Group>& group) {
    Reducer reducer = Fixture().make(group, {.static_graph = true});
    if (rank == 0) {
      reducer.prepare_for_shadow();
      for (const std::size_t i : reducer.missing()) reducer.mark_ready(i, nullptr);
    } else {
      reducer.prepare_for_backward();
      fire(reducer, {1, 0});
      end_learning(reducer);
    }
    drain(reducer);
    if (rank == 1) return;
    reducer.prepare_for_backward();
    fire(reducer, {1});
    CHECK_CONTAINS(check::message_of<std::runtime_error>([&] { fire(reducer, {2}); }),
                   "Your training graph has changed in this iteration");
  });
}

TEST(a_static_graph_is_declared_before_training) {
  on_ranks(1, [](int rank, const std::shared_ptr<Group>& group) {
    Reducer reducer = Fixture().make(group);
    backward(reducer, rank, {2, 1, 0});
    drain(reducer);
    const std::string text =
        check::message_of<std::runtime_error>([&] { reducer.set_static_graph(); });
    CHECK_CONTAINS(text, "set_static_graph() should be called before training loop starts");
  });
}

TEST(a_flush_averages_and_leaves_everything_else_alone) {
  on_ranks(2, [](int rank, const std::shared_ptr<Group>& group) {
    Reducer reducer = Fixture().make(group, {.find_unused_parameters = true});
    reducer.mark_used(2);  // under no_sync
    reducer.prepare_for_flush();
    for (const std::size_t i : {2, 1}) {
      const auto g = gradient(4, static_cast<float>(rank + 1));
      if (i == 2 || rank == 0) reducer.mark_used(i);
      reducer.mark_ready(i, i == 2 || rank == 0 ? g.data() : nullptr);
    }
    CHECK(reducer.mark_unused_ready(0, nullptr));
    reducer.begin_draining();
    for (std::size_t b = 0; b < 3; ++b) reducer.wait_bucket(b);
    CHECK_NEAR(value_in(reducer, 2), 1.5, 1e-6);
    CHECK_NEAR(value_in(reducer, 1), 0.5, 1e-6);
    CHECK(reducer.used_anywhere(1));
    CHECK(!reducer.used_anywhere(0));
    reducer.finish();
    CHECK_EQUAL(reducer.iterations(), 0);
    CHECK(reducer.ready_order().empty());
    CHECK(!reducer.armed());

    // The use under no_sync is accounted for: in the next backward only what it uses counts.
    reducer.prepare_for_backward();
    reducer.mark_used(0);
    for (const std::size_t i : {2, 1, 0}) reducer.mark_ready(i, nullptr);
    drain(reducer);
    CHECK_EQUAL(map_of(reducer), (std::vector<std::int32_t>{2, 0, 0}));
  });
}

TEST(a_bucket_without_a_used_parameter_can_be_left_out) {
  on_ranks(2, [](int rank, const std::shared_ptr<Group>& group) {
    Reducer reducer =
        Fixture().make(group, {.find_unused_parameters = true, .skip_unused_buckets = true});
    reducer.register_hook(std::make_unique<AllReduceHook>(group));
    std::vector<std::size_t> launches;
    Reducer counted =
        Fixture().make(group, {.find_unused_parameters = true, .skip_unused_buckets = true});
    counted.register_hook(std::make_unique<CountingHook>(launches));
    for (Reducer* each : {&reducer, &counted}) {
      each->prepare_for_backward();
      const auto g = gradient(4, static_cast<float>(rank + 1));
      each->mark_unused_ready(1, nullptr);
      each->mark_used(2);
      each->mark_ready(2, g.data());
      each->mark_used(0);
      CHECK(each->mark_ready(0, g.data()));
      drain(*each);
    }
    CHECK_EQUAL(launches, (std::vector<std::size_t>{0, 2}));
    CHECK_NEAR(value_in(reducer, 0), 1.5, 1e-6);
    CHECK_EQUAL(reducer.last_step().buckets[1].launched, 0);
  });
}

TEST(fewer_ranks_may_count_in_the_average) {
  on_ranks(2, [](int rank, const std::shared_ptr<Group>& group) {
    Reducer reducer = Fixture().make(group);
    reducer.divide_by(1);
    backward(reducer, rank, {2, 1, 0});
    drain(reducer);
    CHECK_NEAR(value_in(reducer, 0), 3, 1e-6);
    CHECK_THROWS(reducer.divide_by(0), std::invalid_argument);
  });
}

TEST(a_sparse_gradient_has_a_bucket_without_memory_and_a_hook_of_its_own) {
  on_ranks(2, [](int rank, const std::shared_ptr<Group>& group) {
    Fixture f;
    f.parameters[1].sparse = true;
    Reducer reducer = f.make(group);
    std::vector<std::size_t> sparse;
    reducer.set_sparse_hook(std::make_unique<CountingHook>(sparse));
    for (int step = 0; step < 2; ++step) {
      reducer.rebuild_buckets();
      reducer.prepare_for_backward();
      const auto g = gradient(4, static_cast<float>(rank + 1));
      reducer.mark_ready(2, g.data());
      reducer.mark_ready(1, nullptr);
      CHECK(reducer.mark_ready(0, g.data()));
      drain(reducer);
      CHECK_NEAR(value_in(reducer, 0), 1.5, 1e-6);
      CHECK_NEAR(value_in(reducer, 2), 1.5, 1e-6);
    }
    CHECK_EQUAL(sparse, (std::vector<std::size_t>{1, 1}));
    const Bucket& bucket = reducer.buckets()[reducer.location(1).bucket];
    CHECK(bucket.sparse());
    CHECK_EQUAL(bucket.bytes(), 2 * sizeof(float));

    f.assignment = {{{2, 1}, {0}}, {1, 1}};
    const std::string text = check::message_of<std::invalid_argument>([&] { f.make(group); });
    CHECK_CONTAINS(text, "second has sparse gradients, and needs a bucket of its own");
  });
}
