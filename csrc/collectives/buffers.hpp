// Scratch memory that is used again and again: fresh pages cost more than the messages they hold.
//
// Not thread-safe: used only by whoever drives the engine.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace minitorch {

class Buffers {
 public:
  // A piece of scratch memory, 64-byte aligned; given back on destruction.
  class Block {
   public:
    Block() = default;
    Block(Block&& other) noexcept { swap(other); }
    Block& operator=(Block&& other) noexcept {
      swap(other);
      return *this;
    }
    ~Block() { release(); }
    void release() {
      if (data_ != nullptr) pool_->give_back(std::exchange(data_, nullptr), size_class_);
    }
    std::byte* data() const { return data_; }

   private:
    friend class Buffers;
    void swap(Block& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(data_, other.data_);
      std::swap(size_class_, other.size_class_);
    }
    Buffers* pool_ = nullptr;
    std::byte* data_ = nullptr;
    int size_class_ = 0;
  };

  Buffers() = default;
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
    for (auto& list : free_)
      for (std::byte* data : list) std::free(data);
  }

  Block take(std::size_t bytes) {
    Block block;
    block.size_class_ =
        static_cast<int>(std::bit_width((bytes > kSmallest ? bytes : kSmallest) - 1));
    block.pool_ = this;
    auto& list = free_[static_cast<std::size_t>(block.size_class_)];
    if (!list.empty()) {
      block.data_ = list.back();
      list.pop_back();
      kept_ -= std::size_t{1} << block.size_class_;
    } else {
      void* data = std::aligned_alloc(64, std::size_t{1} << block.size_class_);
      if (data == nullptr) throw std::bad_alloc();
      block.data_ = static_cast<std::byte*>(data);
    }
    return block;
  }

 private:
  static constexpr std::size_t kSmallest = 4096;
  static constexpr std::size_t kKeepAtMost = std::size_t{64} << 20;

  void give_back(std::byte* data, int size_class) {
    const std::size_t bytes = std::size_t{1} << size_class;
    if (kept_ + bytes > kKeepAtMost) {
      std::free(data);
      return;
    }
    kept_ += bytes;
    free_[static_cast<std::size_t>(size_class)].push_back(data);
  }

  std::array<std::vector<std::byte*>, 64> free_;
  std::size_t kept_ = 0;
};

}  // namespace minitorch
