#include "ground/process/signal_watch.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "ground/base/error.h"
#include "ground/base/exit_code.h"

namespace systole {
namespace {

struct Watched {
  int number;
  bool may_be_ignored;
};
constexpr std::array<Watched, 4> kWatched{{{SIGINT, false}, {SIGTERM, false}, {SIGHUP, true}, {SIGUSR1, true}}};

// Global, because a handler receives only the signal's number and signals belong to the process.
std::atomic<bool> watched{false};
std::atomic<int> stops_seen{0};  // SIGINT and SIGTERM
std::atomic<int> first_signal{0};
std::atomic<int> reloads_seen{0};  // SIGHUP, if it asks for one
std::atomic<bool> ends_at_once{false};
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

void note(int number) {
  if (ends_at_once) ::_exit(number == SIGINT ? kExitInterrupted : kExitNotSaved);
  int none = 0;
  first_signal.compare_exchange_strong(none, number);
  if (number == SIGINT || number == SIGTERM) stops_seen.fetch_add(1);
}

void note_reload(int) { reloads_seen.fetch_add(1); }

}  // namespace

SignalWatch::SignalWatch(Hangup hangup) {
  CHECK(!watched.exchange(true), "two signal watches");
  stops_seen = reloads_seen = 0;
  first_signal = 0;
  ends_at_once = false;
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kWatched.size(); ++i) {
    const auto [number, may_be_ignored] = kWatched[i];
    CHECK(::sigaction(number, nullptr, &before_[i]) == 0, "sigaction: {}", errno);
    const bool reloads = number == SIGHUP && hangup == Hangup::reload;
    if (may_be_ignored && before_[i].sa_handler == SIG_IGN && !reloads) continue;
    action.sa_handler = reloads ? note_reload : note;
    CHECK(::sigaction(number, &action, nullptr) == 0, "sigaction: {}", errno);
  }
}

SignalWatch::~SignalWatch() {
  if (!end_is_known_)
    for (std::size_t i = 0; i < kWatched.size(); ++i) ::sigaction(kWatched[i].number, &before_[i], nullptr);
  watched = false;
}

void SignalWatch::end_at_once() { ends_at_once = true; }
void SignalWatch::hold() { ends_at_once = false; }

void SignalWatch::end_is_known() {
  end_is_known_ = true;
  for (const Watched& each : kWatched) std::signal(each.number, SIG_IGN);
}

int SignalWatch::count() const { return std::max(stops_seen.load(std::memory_order_relaxed), signal() == 0 ? 0 : 1); }
int SignalWatch::signal() const { return first_signal.load(std::memory_order_relaxed); }
int SignalWatch::reloads() const { return reloads_seen.load(std::memory_order_relaxed); }

}  // namespace systole
