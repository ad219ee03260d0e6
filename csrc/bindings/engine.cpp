// Engine, Work, and the errors of collectives.
#include "engine/engine.hpp"

#include <pybind11/stl.h>
#include <unistd.h>

#include <limits>
#include <mutex>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bind.hpp"
#include "bindings/waiting.hpp"

namespace minitorch::bindings {
namespace {

// Engines that still run when Python ends: their threads stop before anything they use goes away.
struct Registry {
  std::mutex mutex;
  std::vector<std::weak_ptr<Engine>> engines;
  pid_t process = getpid();
};

Registry& registry() {
  static Registry* const registry = new Registry;
  return *registry;
}

void shutdown_all() {
  if (getpid() != registry().process) {
    // A forked child has a copy of the engines but not their threads: joining one would never
    // return, so neither a shutdown nor a destructor may run here. (The lock may have been taken
    // by a thread that the child does not have, and is not asked for.)
    for (const auto& weak : registry().engines)
      if (auto engine = weak.lock()) new std::shared_ptr<Engine>(std::move(engine));
    return;
  }
  std::vector<std::weak_ptr<Engine>> engines;
  {
    const std::lock_guard lock(registry().mutex);
    engines.swap(registry().engines);
  }
  const py::gil_scoped_release release;
  for (const auto& weak : engines)
    if (const auto engine = weak.lock()) engine->shutdown();
}

// Python handles signals in its main thread only, and only while that thread runs Python.
void look_for_signals() {
  const py::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

std::shared_ptr<Engine> make_engine(std::shared_ptr<Transport> transport, bool threaded,
                                    const Tuning& tuning) {
  auto engine = std::make_shared<Engine>(std::move(transport), threaded, tuning);
  const std::lock_guard lock(registry().mutex);
  std::erase_if(registry().engines, [](const auto& weak) { return weak.expired(); });
  registry().engines.push_back(engine);
  return engine;
}

}  // namespace

std::chrono::nanoseconds to_nanoseconds(double seconds) {
  constexpr double kLongest = 1e9;  // 31 years
  if (seconds != seconds || seconds < 0) throw py::value_error("timeout must not be negative");
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(seconds, kLongest) * 1e9));
}

void wait(Work& work) {
  if (!work.is_completed()) {
    const py::gil_scoped_release release;
    work.wait();
  }
  sweep();
  work.throw_if_failed();
}

py::dict meter_dict(const Meter& meter) {
  py::dict result;
  const Meter::Table table = meter.read();
  for (std::size_t i = 0; i < kOperations; ++i) {
    const Usage& usage = table[i];
    if (usage.calls == 0) continue;
    py::dict row;
    row["calls"] = usage.calls;
    row["messages_sent"] = usage.traffic.messages_sent;
    row["bytes_sent"] = usage.traffic.bytes_sent;
    row["bytes_received"] = usage.traffic.bytes_received;
    row["header_bytes"] = usage.traffic.header_bytes;
    result[name_of(static_cast<Operation>(i))] = row;
  }
  return result;
}

void bind_engine(py::module_& module) {
  const Tuning defaults;
  py::class_<Engine, std::shared_ptr<Engine>>(
      module, "Engine",
      "The communication engine of one rank: queues, a thread, deadlines.\n\n"
      "The tuning parameters must be the same on all ranks.")
      .def(py::init([](std::shared_ptr<Transport> transport, bool threaded,
                       std::size_t segment_bytes, std::size_t min_segment_bytes, std::size_t pieces,
                       std::size_t ahead, std::size_t small_bytes, std::size_t window) {
             return make_engine(
                 std::move(transport), threaded,
                 {segment_bytes, min_segment_bytes, pieces, ahead, small_bytes, window});
           }),
           py::arg("transport"), py::arg("threaded") = true, py::kw_only(),
           py::arg("segment_bytes") = defaults.segment_bytes,
           py::arg("min_segment_bytes") = defaults.min_segment_bytes,
           py::arg("pieces") = defaults.pieces, py::arg("ahead") = defaults.ahead,
           py::arg("small_bytes") = defaults.small_bytes, py::arg("window") = defaults.window)
      .def_property_readonly("rank", &Engine::rank)
      .def_property_readonly("size", &Engine::size)
      .def_property_readonly("threaded", &Engine::threaded,
                             "Whether a thread makes progress; otherwise waiting does.")
      .def(
          "new_group",
          [](Engine& engine, const std::vector<int>& ranks, double timeout,
             std::optional<std::uint32_t> id) {
            const auto limit = to_nanoseconds(timeout);
            return id ? engine.new_group(ranks, limit, *id) : engine.new_group(ranks, limit);
          },
          py::arg("ranks"), py::arg("timeout_seconds"), py::arg("id") = py::none(),
          py::keep_alive<0, 1>(),
          "A group of world ranks. Local: all ranks call it in the same order, or the members "
          "agree on an id.")
      .def("fail", &Engine::fail, py::arg("message"), py::call_guard<py::gil_scoped_release>(),
           "Tell all ranks that this one failed: everything pending and later raises.")
      .def("goodbye", &Engine::goodbye, py::call_guard<py::gil_scoped_release>(),
           "Announce a normal end: peers that still wait for this rank raise.")
      .def("shutdown", &Engine::shutdown, py::call_guard<py::gil_scoped_release>(),
           "Stop; what is pending fails. Idempotent.")
      .def(
          "error",
          [](const Engine& engine) -> std::optional<std::string> {
            auto text = engine.error();
            return text.empty() ? std::nullopt : std::optional(std::move(text));
          },
          "Why the engine failed, or None.")
      .def(
          "meter", [](const Engine& engine) { return meter_dict(engine.meter()); },
          "What was sent and received so far, by operation.")
      .def("reset_meter", [](const Engine& engine) { engine.meter().reset(); })
      .def_property("trace", &Engine::shared_trace, &Engine::set_trace);

  py::class_<Work, std::shared_ptr<Work>>(module, "Work", "The promise of a collective.")
      .def(
          "wait",
          [](Work& work, std::optional<double> timeout) {
            if (timeout && !work.is_completed()) work.set_timeout(to_nanoseconds(*timeout));
            wait(work);
          },
          py::arg("timeout_seconds") = py::none(),
          "Block until done; raise what went wrong. A timeout that passes fails the engine.")
      .def("is_completed", &Work::is_completed)
      .def(
          "exception",
          [](const Work& work) -> std::optional<std::string> {
            return work.failed() ? std::optional(work.error()) : std::nullopt;
          },
          "The error's text, or None.")
      .def_property_readonly("queued_ns", &Work::queued_ns)
      .def_property_readonly("started_ns", &Work::started_ns)
      .def_property_readonly("finished_ns", &Work::finished_ns)
      .def_property_readonly("bytes", &Work::bytes)
      .def_property_readonly("label", &Work::label)
      .def_property_readonly("missing", &Work::missing,
                             "After a deadline: the world ranks that it was waiting for.")
      .def_property_readonly("source", &Work::source, "Of a finished recv: who sent.")
      .def("__repr__", [](const Work& work) {
        return "<Work " + work.describe() +
               (work.failed()         ? ", failed>"
                : work.is_completed() ? ", finished>"
                                      : ", pending>");
      });

  const py::exception<CollectiveError> error(module, "CollectiveError", PyExc_RuntimeError);
  const py::exception<CollectiveMismatch> mismatch(module, "CollectiveMismatch", error.ptr());
  const py::exception<CollectiveTimeout> timeout(module, "CollectiveTimeout", error.ptr());
  static_cast<void>(mismatch);
  static_cast<void>(timeout);
  // Translators are asked in reverse: the base class last.
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    const auto raise = [](const char* name, const std::exception& what) {
      py::set_error(py::module_::import("minitorch._core").attr(name), what.what());
    };
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const CollectiveMismatch& what) {
      raise("CollectiveMismatch", what);
    } catch (const CollectiveTimeout& what) {
      raise("CollectiveTimeout", what);
    } catch (const CollectiveError& what) {
      raise("CollectiveError", what);
    }
  });

  Work::set_interrupt(&look_for_signals);
  registry();  // notes whose process this is
  py::module_::import("atexit").attr("register")(py::cpp_function(&shutdown_all));
}

}  // namespace minitorch::bindings
