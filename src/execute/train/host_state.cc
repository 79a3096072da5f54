#include "execute/train/host_state.h"

namespace systole {

HostState::HostState(Executor& executor) : executor_(executor) {
  if (executor.device().host_sees_memory()) return;
  for (const ProgramValue& value : executor.program().values) {
    const bool kept = value.residence == Residence::parameter || value.residence == Residence::state;
    values_.emplace_back(kept ? static_cast<std::size_t>(value.type.bytes().count()) : 0);
  }
}

Status HostState::take() {
  for (std::size_t v = 0; v < values_.size(); ++v) {
    if (!values_[v].empty()) TRY(executor_.read(static_cast<int>(v), 0, values_[v]));
  }
  return {};
}

std::span<std::byte> HostState::of(int value) {
  if (values_.empty()) return {};
  return values_[static_cast<std::size_t>(value)];
}

}  // namespace systole
