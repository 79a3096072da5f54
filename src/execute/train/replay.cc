#include "execute/train/replay.h"

#include <algorithm>

#include "ground/base/hash.h"

namespace systole {

bool ReplayCheck::found(const Error& error) { return error.code == ErrorCode::flipped_bit; }

ReplayCheck::ReplayCheck(Executor& executor, const Schedule& train) : executor_(executor), train_(train) {
  const Program& program = executor.program();
  while (end_ < train.actions.size()) {
    const std::string& name = program.functions[static_cast<std::size_t>(train.actions[end_].function)].name;
    if (name == "reduce" || name == "norm" || name == "update") break;
    if (name.starts_with("send_ties") || name.starts_with("receive_ties")) break;
    ++end_;
  }
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    const ProgramValue& value = program.values[v];
    if (value.residence != Residence::gradient || !value.name.starts_with("gradient/")) continue;
    for (int slot = 0; slot < value.slots; ++slot) gradients_.push_back({static_cast<int>(v), slot});
  }
  hashes_.resize(gradients_.size());
}

Status ReplayCheck::change(std::size_t nth, const std::function<void(std::span<std::byte>)>& how) {
  const auto [value, slot] = gradients_[nth];
  if (const std::span<std::byte> view = executor_.view(value, slot); !view.empty()) {
    how(view);
    return {};
  }
  const Bytes size = executor_.program().values[static_cast<std::size_t>(value)].type.bytes();
  std::vector<std::byte> copy(static_cast<std::size_t>(size.count()));
  TRY(executor_.read(value, slot, copy));
  how(copy);
  return executor_.write(value, slot, copy);
}

std::uint64_t ReplayCheck::hash_of(const Place& place) {
  std::span<std::byte> bytes = executor_.view(place.value, place.slot);
  if (bytes.empty()) {
    const ProgramValue& v = executor_.program().values[static_cast<std::size_t>(place.value)];
    copy_.resize(static_cast<std::size_t>(v.type.bytes().count()));
    executor_.read(place.value, place.slot, copy_).value();
    bytes = copy_;
  }
  return hash64(std::as_bytes(bytes));
}

Status ReplayCheck::compare(std::int64_t step, ActionObserver* observer) {
  for (std::size_t g = 0; g < gradients_.size(); ++g) hashes_[g] = hash_of(gradients_[g]);
  WorkCounters not_of_the_plan;
  TRY(executor_.run(train_, observer, of_gradients(), &not_of_the_plan));
  for (std::size_t g = 0; g < gradients_.size(); ++g) {
    if (hash_of(gradients_[g]) == hashes_[g]) continue;
    const std::string& name = executor_.program().values[static_cast<std::size_t>(gradients_[g].value)].name;
    return error(ErrorKind::corrupt, "step {} computed twice gives two {}: a bit was flipped here", step, name)
        .coded(ErrorCode::flipped_bit)
        .hinted("memory or a processor of this host is not to be trusted; the run goes on from its checkpoint");
  }
  return {};
}

}  // namespace systole
