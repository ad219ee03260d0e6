// How Python waits: without the GIL, and so that Ctrl-C gets through.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>

#include "engine/engine.hpp"

namespace minitorch::bindings {

// Waits for the work; raises its error, or KeyboardInterrupt (the work then goes on).
void wait(Work& work);

// Throws ValueError for negative values and NaN.
std::chrono::nanoseconds to_nanoseconds(double seconds);

pybind11::dict meter_dict(const Meter& meter);

}  // namespace minitorch::bindings
