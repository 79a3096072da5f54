#include "execute/train/bad_value.h"

#include <limits>

#include "execute/runtime/eager.h"
#include "execute/train/least_of.h"

namespace systole {
namespace {

// Keeps the first error of EagerCheck and goes on, because other ranks wait in the collectives to come.
class FirstBad final : public KernelObserver, public ActionObserver {
 public:
  explicit FirstBad(std::int64_t step) : step_(step) {}
  void begin(const Action& action, const Function& function) override { check_.enter(step_, action, function); }
  void end(const Action&, const Function&) override {}
  void before(const ObservedKernel& kernel) override {
    if (!found_) check_.before(kernel);
  }
  Status after(const ObservedKernel& kernel) override {
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
  const std::int64_t first = TRY(least_of(mine, ranks, executor.program().mesh));
  return mine == first ? look.found() : std::nullopt;
}

}  // namespace systole
