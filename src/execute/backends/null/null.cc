#include "execute/backends/null/null.h"

#include <algorithm>

namespace systole {
namespace {

class NullMemory : public Memory {
 public:
  explicit NullMemory(Bytes size) : size_(size) {}
  Bytes size() const override { return size_; }
  std::byte* host() override { return nullptr; }

 private:
  Bytes size_;
};

class NullDevice : public Device {
 public:
  explicit NullDevice(Target target) : target_(std::move(target)) {}
  const Target& target() const override { return target_; }
  Bytes workspace(const Graph&, const GraphNode&) const override { return Bytes(0); }
  Result<std::unique_ptr<Memory>> allocate(Bytes bytes) override {
    return std::unique_ptr<Memory>(std::make_unique<NullMemory>(bytes));
  }
  DeviceEvent copy_in(Memory&, const SlotAddress&, std::span<const std::byte>) override { return {}; }
  DeviceEvent copy_out(Memory&, const SlotAddress&, std::span<std::byte> into) override {
    std::fill(into.begin(), into.end(), std::byte{0});
    return {};
  }
  Result<std::unique_ptr<Executable>> compile(const Function&) override { return std::make_unique<Executable>(); }
  Result<std::unique_ptr<Call>> bind(const Executable&, Memory&, const Addresses&) override {
    return std::make_unique<Call>();
  }
  DeviceEvent run(Call&, WorkCounters& counters) override {
    ++counters.calls;
    return {};
  }

 private:
  Target target_;
};

}  // namespace

std::unique_ptr<Device> make_null_device(Target target) { return std::make_unique<NullDevice>(std::move(target)); }

}  // namespace systole
