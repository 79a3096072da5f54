#include "execute/train/bad_value.h"

#include <limits>

#include "execute/runtime/eager.h"

namespace systole {
namespace {

// Remembers what EagerCheck would stop at, and goes on: the other ranks wait in the collectives to come.
class FirstBad final : public KernelObserver, public ActionObserver {
 public:
  explicit FirstBad(std::int64_t step) : step_(step) {}
  void begin(const Action& action, const Function& function) override { check_.enter(step_, action, function); }
  void end(const Action&, const Function&) override {}
  void before(const SeenKernel& kernel) override {
    if (!found_) check_.before(kernel);
  }
  Status after(const SeenKernel& kernel) override {
    if (found_) return {};
    const Status fine = check_.after(kernel);
    if (!fine.ok()) found_ = fine.error().message;
    return {};
  }
  const std::optional<std::string>& found() const { return found_; }
  std::int64_t kernels() const { return check_.kernels(); }

 private:
  std::int64_t step_;
  EagerCheck check_{nullptr};
  std::optional<std::string> found_;
};

}  // namespace

Result<std::optional<std::string>> first_bad_value(Executor& executor, const Schedule& train, ActionRange range,
                                                   std::int64_t step, Communicator& ranks) {
  FirstBad look(step);
  TRY(executor.look(train, range, look, &look));
  const std::int64_t mine = look.found() ? look.kernels() : std::numeric_limits<std::int64_t>::max();
  std::int64_t first = mine;
  for (std::int32_t rank = 0; rank < ranks.num_ranks(); ++rank) {
    std::int64_t theirs = mine;
    TRY(ranks.broadcast(std::as_writable_bytes(std::span(&theirs, 1)), rank));
    first = std::min(first, theirs);
  }
  return mine == first ? look.found() : std::nullopt;
}

}  // namespace systole
