// How a vector is cut: into one chunk per rank, and each chunk into segments that travel one by
// one.
#pragma once

#include <algorithm>
#include <cstddef>

#include "collectives/channel.hpp"

namespace minitorch::collectives {

// A run of elements of the vector.
struct Range {
  std::size_t begin = 0;
  std::size_t count = 0;
};

// `elements` in `parts` chunks; the first `elements % parts` of them are one longer.
struct Chunks {
  std::size_t elements;
  std::size_t parts;

  Range operator[](std::size_t i) const {
    const std::size_t base = elements / parts, longer = elements % parts;
    return {i * base + std::min(i, longer), base + (i < longer ? 1 : 0)};
  }
  std::size_t longest() const { return elements / parts + (elements % parts != 0 ? 1 : 0); }
};

// Elements of one segment of a chunk: at most Tuning::segment_bytes; a chunk long enough for that
// is cut into Tuning::pieces at least, so that the pipeline has something to overlap.
inline std::size_t segment_elements(const Tuning& tuning, std::size_t chunk_elements,
                                    std::size_t item_bytes) {
  const std::size_t bytes = chunk_elements * item_bytes;
  const std::size_t wanted = bytes / std::max<std::size_t>(tuning.pieces, 1);
  const std::size_t lowest = std::min(tuning.min_segment_bytes, tuning.segment_bytes);
  const std::size_t segment = std::clamp(wanted, lowest, tuning.segment_bytes);
  // Whole cache lines, so that kernels start aligned.
  const std::size_t in_elements = segment / item_bytes;
  return std::max<std::size_t>(in_elements >= 64 ? in_elements / 64 * 64 : in_elements, 1);
}

inline std::size_t segments_of(std::size_t chunk_elements, std::size_t segment) {
  // An empty chunk still is one (empty) segment: its message carries the header.
  return std::max<std::size_t>((chunk_elements + segment - 1) / segment, 1);
}

}  // namespace minitorch::collectives
