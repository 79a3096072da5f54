#pragma once
// Being asked to stop: a flag that a loop looks at between steps. While a SignalWatch lives these signals do not end
// the process.
//
//   SIGINT, SIGTERM   the first asks to finish, a second says to leave at once
//   SIGHUP, SIGUSR1   ask to finish, as often as they come: a terminal that closes sends SIGHUP twice (the kernel and
//   the
//                     shell), and Slurm's --signal=USR1 comes before its SIGTERM. Ignored at the start, as under nohup,
//                     they stay ignored.

#include <array>
#include <csignal>

namespace systole {

class SignalWatch {
 public:
  SignalWatch();   // REQUIRES: no other one lives
  ~SignalWatch();  // puts back what handled the signals before, unless the end is known
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // From any thread, at the price of a load.
  bool stop_requested() const { return count() > 0; }
  bool stop_at_once() const { return count() > 1; }  // a second Ctrl-C
  int count() const;
  int signal() const;  // the first one's number, 0 before

  // Until `hold` there is nothing to save, and no loop that looks: a signal ends the process where it is, with the exit
  // code of one that was interrupted (SIGINT) or stopped. What it forked must die with it.
  void end_at_once();
  void hold();
  // What the process ends with is known: until it has ended none of these signals changes that, even once this is gone.
  void end_is_known();

 private:
  std::array<struct sigaction, 4> before_;
  bool end_is_known_ = false;
};

}  // namespace systole
