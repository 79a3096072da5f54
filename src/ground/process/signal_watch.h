#pragma once
// Being asked to stop: SIGINT and SIGTERM become a flag that a loop looks at between steps. While a SignalWatch lives
// they do not end the process; the first asks it to finish, the second says that it should leave at once.

#include <csignal>

namespace systole {

class SignalWatch {
 public:
  SignalWatch();   // REQUIRES: no other one lives
  ~SignalWatch();  // puts back what handled the signals before
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // From any thread, at the price of a load.
  bool stop_requested() const { return count() > 0; }
  bool stop_at_once() const { return count() > 1; }  // a second Ctrl-C
  int count() const;
  int signal() const;  // the first one's number, 0 before

 private:
  struct sigaction before_int_, before_term_;
};

}  // namespace systole
