#pragma once
// Stop requests by signals: a flag that a loop checks between steps. While a SignalWatch exists, these signals do not
// end the process.
//
//   SIGINT, SIGTERM   the first asks to finish, a second asks to leave at once
//   SIGHUP, SIGUSR1   ask to finish, however often they arrive: a closing terminal sends SIGHUP twice (kernel and
//                     shell), and Slurm's --signal=USR1 comes before its SIGTERM. If ignored at the start, as under
//                     nohup, they stay ignored.
//
// A server may take SIGHUP as it is customary for one: as a wish to read anew what it serves (Hangup::reload). Then it
// does not stop, and is counted also under nohup.

#include <array>
#include <csignal>

namespace systole {

enum class Hangup { stop, reload };

class SignalWatch {
 public:
  explicit SignalWatch(Hangup hangup = Hangup::stop);  // REQUIRES: no other one exists
  ~SignalWatch();  // restores the previous handlers, unless end_is_known() was called
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // From any thread, at the cost of a load.
  bool stop_requested() const { return count() > 0; }
  bool stop_at_once() const { return count() > 1; }  // a second Ctrl-C
  int count() const;
  int signal() const;   // number of the first one; 0 before
  int reloads() const;  // hangups that ask for one; not in count() and signal()

  // Until `hold`, a signal ends the process at once, since there is nothing to save and no loop that checks the flag.
  // The exit code is that of an interrupted (SIGINT) or stopped process. REQUIRES: forked children die with this
  // process.
  void end_at_once();
  void hold();
  // The exit code is decided: from now to the end of the process these signals are ignored, even after this object is
  // destroyed.
  void end_is_known();

 private:
  std::array<struct sigaction, 4> before_;
  bool end_is_known_ = false;
};

}  // namespace systole
