#pragma once
// A Program's values in device memory: one buffer per value and slot, which exists once it has been written.

#include <map>
#include <optional>
#include <utility>

#include "execute/runtime/device.h"
#include "ground/pjrt/client.h"

namespace systole {

class XlaMemory : public Memory {
 public:
  explicit XlaMemory(Bytes planned) : planned_(planned) {}

  Bytes size() const override { return planned_; }
  std::byte* host() override { return nullptr; }

  void put(const SlotAddress& at, pjrt::Buffer buffer) {
    buffers_.insert_or_assign(std::pair(at.value, at.slot), std::move(buffer));
  }
  // Null: never written, or donated.
  const pjrt::Buffer* find(const SlotAddress& at) const {
    const auto found = buffers_.find(std::pair(at.value, at.slot));
    return found == buffers_.end() ? nullptr : &found->second;
  }
  void remove(const SlotAddress& at) { buffers_.erase(std::pair(at.value, at.slot)); }

 private:
  Bytes planned_;
  std::map<std::pair<int, int>, pjrt::Buffer> buffers_;
};

}  // namespace systole
