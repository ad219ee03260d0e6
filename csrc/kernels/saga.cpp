// Chooses the loop: penalty, dense or CSR, and the instruction set of this machine.
#include "kernels/saga.hpp"

#include <stdexcept>
#include <string>

#include "kernels/saga_dense.hpp"
#include "kernels/saga_sparse.hpp"

namespace minitorch::kernels {
namespace {

template <bool l1, class T>
MINITORCH_INLINE void choose_rows(const SagaProblem<T>& p, const SagaState<T>& s,
                                  const std::int64_t* indices, std::int64_t steps,
                                  const T* scales) {
  if (p.offsets == nullptr) return saga_dense<l1>(p, s, indices, steps, scales);
  if (p.outputs == 1) return saga_sparse<l1, true>(p, s, indices, steps, scales);
  saga_sparse<l1, false>(p, s, indices, steps, scales);
}

template <class T>
MINITORCH_INLINE void run(const SagaProblem<T>& p, const SagaState<T>& s,
                          const std::int64_t* indices, std::int64_t steps, const T* scales) {
  if (p.l1 > 0)
    choose_rows<true>(p, s, indices, steps, scales);
  else
    choose_rows<false>(p, s, indices, steps, scales);
}

template <class T>
void run_portable(const SagaProblem<T>& p, const SagaState<T>& s, const std::int64_t* indices,
                  std::int64_t steps, const T* scales) {
  run(p, s, indices, steps, scales);
}

#if defined(__x86_64__) && defined(__GNUC__)
// Without FMA: a fused product would round once less than the portable loop.
template <class T>
__attribute__((target("avx2"))) void run_avx2(const SagaProblem<T>& p, const SagaState<T>& s,
                                              const std::int64_t* indices, std::int64_t steps,
                                              const T* scales) {
  run(p, s, indices, steps, scales);
}

bool has_avx2() {
  static const bool yes = __builtin_cpu_supports("avx2");
  return yes;
}
#endif

}  // namespace

template <class T>
void saga(const SagaProblem<T>& p, const SagaState<T>& s, const std::int64_t* indices,
          std::int64_t steps, const T* scales) {
  for (std::int64_t t = 0; t < steps; ++t)
    if (indices[t] < 0 || indices[t] >= p.samples)
      throw std::out_of_range("saga: index " + std::to_string(indices[t]) + " at step " +
                              std::to_string(t) + " is not one of " + std::to_string(p.samples) +
                              " samples");
  if (steps <= 0) return;
#if defined(__x86_64__) && defined(__GNUC__)
  if (has_avx2()) return run_avx2(p, s, indices, steps, scales);
#endif
  run_portable(p, s, indices, steps, scales);
}

template void saga(const SagaProblem<float>&, const SagaState<float>&, const std::int64_t*,
                   std::int64_t, const float*);
template void saga(const SagaProblem<double>&, const SagaState<double>&, const std::int64_t*,
                   std::int64_t, const double*);

}  // namespace minitorch::kernels
