// The reducer's state machine on ranks that are threads: order of launches, averages, rebuild,
// unused parameters, and how a backward that did not finish is told from one that raised.
#include "reducer_fixture.hpp"

using namespace reducer_test;

TEST(averages_on_any_number_of_ranks) {
  for (const int size : {1, 2, 3, 4}) {
    on_ranks(size, [size](int rank, const std::shared_ptr<Group>& group) {
      Reducer reducer = Fixture().make(group);
      for (int step = 0; step < 3; ++step) {
        reducer.ensure_finished();
        reducer.rebuild_buckets();
        backward(reducer, rank, {2, 1, 0});
        drain(reducer);
        const float mean = static_cast<float>(size + 1) / 2;
        CHECK_NEAR(value_in(reducer, 0), mean, 1e-5);
        CHECK_NEAR(value_in(reducer, 1), 10 * mean, 1e-4);
        CHECK_NEAR(value_in(reducer, 2), 100 * mean, 1e-3);
      }
      CHECK_EQUAL(reducer.iterations(), 3);
    });
  }
}

TEST(buckets_launch_strictly_in_index_order) {
  on_ranks(1, [](int, const std::shared_ptr<Group>& group) {
    Reducer reducer = Fixture().make(group);
    const auto g = gradient(4, 1);
    reducer.prepare_for_backward();
    CHECK(!reducer.mark_ready(0, g.data()));  // bucket 2 is full, 0 and 1 are not
    CHECK_EQUAL(reducer.launched(), 0);
    CHECK(!reducer.mark_ready(2, g.data()));
    CHECK_EQUAL(reducer.launched(), 1);
    CHECK(reducer.mark_ready(1, g.data()));  // sets off 1 and the waiting 2
    CHECK_EQUAL(reducer.launched(), 3);
    drain(reducer);
    const auto& buckets = reducer.last_step().buckets;
    CHECK(buckets[2].ready < buckets[0].ready);
    CHECK(buckets[0].launched <= buckets[1].launched && buckets[1].launched <= buckets[2].launched);
  });
}

TEST(ranks_may_become_ready_in_different_orders) {
  on_ranks(3, [](int rank, const std::shared_ptr<Group>& group) {
    Reducer reducer = Fixture().make(group);
    const std::vector<std::vector<std::size_t>> orders = {{1, 0, 2}, {2, 1, 0}, {0, 1, 2}};
    for (int step = 0; step < 3; ++step) {
      reducer.rebuild_buckets();
      backward(reducer, rank, orders[static_cast<std::size_t>(rank)]);
      drain(reducer);
      CHECK_NEAR(value_in(reducer, 1), 20, 1e-4);
    }
    // Rebuilt in rank 0's order, everywhere.
    Indices members;
    for (const Bucket& bucket : reducer.buckets()) members.push_back({bucket.slots()[0].parameter});
    CHECK_EQUAL(members, (Indices{{1}, {0}, {2}}));
    CHECK(reducer.has_rebuilt());
  });
}

TEST(a_gradient_in_its_slot_is_scaled_there) {
  on_ranks(2, [](int rank, const std::shared_ptr<Group>& group) {
    Reducer reducer = Fixture().make(group);
    reducer.prepare_for_backward();
    for (const std::size_t i : {2, 1, 0}) {
      const auto location = reducer.location(i);
      const Bucket& bucket = reducer.buckets()[location.bucket];
      std::byte* slot = bucket.address(bucket.slots()[location.slot]);
      const auto g = gradient(reducer.parameters()[i].elements, static_cast<float>(rank + 1));
      std::memcpy(slot, g.data(), g.size() * sizeof(float));
      reducer.mark_ready(i, slot);
    }
    drain(reducer);
    CHECK_NEAR(value_in(reducer, 0), 1.5, 1e-6);
  });
}

TEST(nothing_happens_while_not_armed) {
  on_ranks(1, [](int, const std::shared_ptr<Group>& group) {
    Reducer reducer = Fixture().make(group);
    const auto g = gradient(4, 1);
    CHECK(!reducer.mark_ready(0, g.data()));
    reducer.prepare_for_backward();
    reducer.prepare_for_backward();  // a dropped forward
    reducer.ensure_finished();
    CHECK(reducer.unfinished().empty());
  });
}

TEST(a_parameter_is_ready_only_once) {
  on_ranks(1, [](int, const std::shared_ptr<Group>& group) {
    Reducer reducer = Fixture().make(group);
    const auto g = gradient(4, 1);
    reducer.prepare_for_backward();
    reducer.mark_ready(1, g.data());
    const std::string text =
        check::message_of<std::runtime_error>([&] { reducer.mark_ready(1, g.data()); });
    CHECK_CONTAINS(text,
                   "Expected to mark a variable ready only once. Parameter at index 1 with name "
                   "second has been marked as ready twice.");
  });
}

TEST(an_unfinished_pass_names_what_is_missing) {
  on_ranks(1, [](int, const std::shared_ptr<Group>& group) {
    Reducer reducer = Fixture().make(group);
    const auto g = gradient(4, 1);
    reducer.prepare_for_backward();
    reducer.mark_ready(1, g.data());
    reducer.mark_pass_ended();
    const std::string text =
        check::message_of<std::runtime_error>([&] { reducer.ensure_finished(); });
    CHECK_CONTAINS(text, kUnfinished);
    CHECK_CONTAINS(text, "Parameter indices which did not receive grad for rank 0: 0 2.");
    CHECK(text.ends_with(": first, third"));
    CHECK_EQUAL(reducer.unfinished(), text);
  });
}

TEST(a_pass_that_raised_is_forgotten_unless_something_was_launched) {
  on_ranks(1, [](int rank, const std::shared_ptr<Group>& group) {
    Reducer reducer = Fixture().make(group);
    const auto g = gradient(4, 1);
    reducer.prepare_for_backward();
    reducer.mark_ready(1, g.data());  // and no end of the pass
    CHECK(!reducer.unfinished().empty());
    reducer.ensure_finished();
    backward(reducer, rank, {2, 1, 0});
    drain(reducer);

    reducer.prepare_for_backward();
    reducer.mark_ready(2, g.data());  // launches bucket 0
    const std::string text =
        check::message_of<std::runtime_error>([&] { reducer.ensure_finished(); });
    CHECK_CONTAINS(text, kUnfinished);
    CHECK_CONTAINS(text, "after 1 of 3 buckets were launched");
  });
}

TEST(unused_parameters_contribute_zeros_and_are_told_apart) {
  on_ranks(2, [](int rank, const std::shared_ptr<Group>& group) {
    Reducer reducer = Fixture().make(group, {.find_unused_parameters = true});
    for (int step = 0; step < 2; ++step) {
      CHECK(!reducer.rebuild_buckets());
      reducer.prepare_for_backward();
      const auto g = gradient(4, 2);
      reducer.mark_ready(1, nullptr);  // used nowhere
      if (rank == 0) reducer.mark_used(2);
      reducer.mark_ready(2, rank == 0 ? g.data() : nullptr);
      reducer.mark_used(0);
      CHECK(reducer.mark_ready(0, g.data()));
      reducer.begin_draining();
      for (std::size_t b = 0; b < 3; ++b) reducer.wait_bucket(b);
      CHECK(reducer.used_anywhere(0));
      CHECK(!reducer.used_anywhere(1));
      CHECK(reducer.used_anywhere(2));
      CHECK_EQUAL(value_in(reducer, 2), 1);
      reducer.finish();
      const auto map = reducer.used_map();
      CHECK(std::vector<std::int32_t>(map.begin(), map.end()) ==
            (std::vector<std::int32_t>{2, 0, 1}));
    }
  });
}

TEST(a_hook_gets_undivided_gradients_and_is_registered_once) {
  on_ranks(2, [](int rank, const std::shared_ptr<Group>& group) {
    Reducer reducer = Fixture().make(group);
    std::vector<std::size_t> launches;
    reducer.register_hook(std::make_unique<CountingHook>(launches));
    const std::string again = check::message_of<std::runtime_error>(
        [&] { reducer.register_hook(std::make_unique<CountingHook>(launches)); });
    CHECK_EQUAL(again, "register_comm_hook or register_builtin_comm_hook can only be called once.");
    backward(reducer, rank, {0, 1, 2});
    drain(reducer);
    CHECK_EQUAL(launches, (std::vector<std::size_t>{0, 1, 2}));
    CHECK_EQUAL(value_in(reducer, 0), static_cast<float>(rank + 1));
  });
}

TEST(assignments_that_do_not_fit_the_parameters_are_refused) {
  on_ranks(1, [](int, const std::shared_ptr<Group>& group) {
    const Fixture f;
    auto build = [&](Indices indices) {
      const std::vector<std::size_t> limits(indices.size(), 1);
      Reducer(group, f.parameters, {std::move(indices), limits});
    };
    CHECK_THROWS(build({{0, 1}}), std::invalid_argument);
    CHECK_THROWS(build({{0, 1, 2}, {1}}), std::invalid_argument);
  });
}
