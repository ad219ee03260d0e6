// minitorch._core: the C++ core as a Python module. One file per folder of csrc; this one only
// lists them.
#include <pybind11/pybind11.h>

#include "bindings/bind.hpp"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C++ core of minitorch: transports, collectives, engine, reducer.";
  minitorch::bindings::bind_kernels(module);
  minitorch::bindings::bind_saga(module);
  minitorch::bindings::bind_trace(module);
  minitorch::bindings::bind_transport(module);
  minitorch::bindings::bind_engine(module);
  minitorch::bindings::bind_collectives(module);
  bind_reducer(module);
}
