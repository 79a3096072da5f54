#include "execute/runtime/arena_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace systole {
namespace {

class Arena : public Memory {
 public:
  Arena(std::byte* data, Bytes size) : data_(data), size_(size) {}
  ~Arena() override {
    if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(size_.count()));
  }
  Bytes size() const override { return size_; }
  std::byte* host() override { return data_; }

 private:
  std::byte* data_;
  Bytes size_;
};

}  // namespace

Result<std::unique_ptr<Memory>> allocate_arena(Bytes bytes) {
  if (bytes.count() == 0) return std::unique_ptr<Memory>(std::make_unique<Arena>(nullptr, bytes));
  void* data = mmap(nullptr, static_cast<std::size_t>(bytes.count()), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (data == MAP_FAILED) {
    return error(ErrorKind::does_not_fit, "the system has no {} for the arena: {}", to_string(bytes),
                 std::strerror(errno))
        .hinted(
            "train.microbatches, train.recompute or a smaller model lower the need; 'systole plan' shows by how much");
  }
  return std::unique_ptr<Memory>(std::make_unique<Arena>(static_cast<std::byte*>(data), bytes));
}

}  // namespace systole
