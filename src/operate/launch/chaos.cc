#include "operate/launch/chaos.h"

#include <algorithm>
#include <csignal>

namespace systole {

Chaos::Chaos(HazardModel model, std::function<void(std::string_view)> tell)
    : model_(std::move(model)), tell_(std::move(tell)) {}

void Chaos::act(const LocalRanks& ranks, Seconds now) {
  const Seconds since = last_ == Seconds() ? Seconds() : now - last_;
  last_ = now;
  go_on(ranks, now);
  const std::vector<int> there = ranks.running();
  if (there.empty()) return;
  lived_ += since;
  if (!drawn_) {
    next_ = hazard(model_, static_cast<std::uint64_t>(done_), static_cast<int>(there.size()));
    due_ = (done_ == 0 ? model_.spare : due_) + next_.after;
    drawn_ = true;
  }
  if (done_ >= model_.most || lived_ < due_) return;
  drawn_ = false;
  ++done_;
  due_ = lived_;
  const int rank =
      there[std::min(static_cast<std::size_t>(next_.which * static_cast<double>(there.size())), there.size() - 1)];
  const pid_t pid = ranks.pid_of(rank);
  const bool kills = next_.kind.what == HazardKind::What::kill;
  if (::kill(pid, kills ? SIGKILL : SIGSTOP) != 0) return;
  if (!kills) stopped_.push_back({pid, rank, now + next_.kind.lasts});
  if (!tell_) return;
  tell_(fmt::format("chaos: {} {}{} ({} of {})",
                    kills                                       ? "kills"
                    : next_.kind.what == HazardKind::What::stop ? "stops"
                                                                : "delays",
                    fmt::format("rank {}", rank), kills ? "" : fmt::format(" for {}", to_string(next_.kind.lasts)),
                    done_, model_.most));
}

// A pid that belongs to another process by now is left alone.
void Chaos::go_on(const LocalRanks& ranks, Seconds now) {
  std::erase_if(stopped_, [&](const Stopped& stopped) {
    if (ranks.pid_of(stopped.rank) != stopped.pid) return true;
    if (now < stopped.until) return false;
    ::kill(stopped.pid, SIGCONT);
    return true;
  });
}

}  // namespace systole
