// What module.cpp puts together. Order matters: a type must be known before it appears in a
// signature.
#pragma once

#include <pybind11/pybind11.h>

namespace minitorch::bindings {

void bind_kernels(pybind11::module_& module);
void bind_saga(pybind11::module_& module);
void bind_trace(pybind11::module_& module);
void bind_transport(pybind11::module_& module);
void bind_collectives(pybind11::module_& module);
void bind_engine(pybind11::module_& module);

}  // namespace minitorch::bindings

void bind_reducer(pybind11::module_& module);
