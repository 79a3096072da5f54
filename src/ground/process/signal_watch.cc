#include "ground/process/signal_watch.h"

#include <atomic>
#include <cerrno>

#include "ground/base/error.h"

namespace systole {
namespace {

// A handler receives nothing but the number, so these are the process's, as the signals are.
std::atomic<bool> watched{false};
std::atomic<int> signals_seen{0};
std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

void note(int number) {
  int none = 0;
  first_signal.compare_exchange_strong(none, number);
  signals_seen.fetch_add(1);
}

}  // namespace

SignalWatch::SignalWatch() {
  CHECK(!watched.exchange(true), "two signal watches");
  signals_seen = 0;
  first_signal = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  CHECK(::sigaction(SIGINT, &action, &before_int_) == 0, "sigaction: {}", errno);
  CHECK(::sigaction(SIGTERM, &action, &before_term_) == 0, "sigaction: {}", errno);
}

SignalWatch::~SignalWatch() {
  ::sigaction(SIGINT, &before_int_, nullptr);
  ::sigaction(SIGTERM, &before_term_, nullptr);
  watched = false;
}

int SignalWatch::count() const { return signals_seen.load(std::memory_order_relaxed); }
int SignalWatch::signal() const { return first_signal.load(std::memory_order_relaxed); }

}  // namespace systole
