#pragma once
// Progress of a run for people: a redrawn line on a terminal, plain lines otherwise. Called on the thread that writes
// the events, never on the step's.

#include "describe/spec/plan.h"
#include "operate/cli/printer.h"

namespace systole::cli {

class ProgressLines {
 public:
  ProgressLines(Printer& out, const Plan& plan, std::int64_t every) : out_(out), plan_(plan), every_(every) {}
  // The starting point of this process: steps and tokens done, and time that counts against train.time. Call before the
  // first event.
  void begin(std::int64_t step, std::int64_t tokens, Seconds trained);
  void see(const Event& event);

 private:
  void step(const StepEnded& step, Seconds at);
  // Completed fraction of the run, by whichever limit ends it; at most 1.
  double fraction(std::int64_t step, std::int64_t tokens, Seconds trained) const;
  // "  2 min 05 s left", extrapolated from this process; empty if nothing is left, or unknown.
  std::string left(double done, Seconds at) const;

  Printer& out_;
  const Plan& plan_;
  std::int64_t every_;
  double shown_loss_ = 0;  // a running mean
  bool told_of_skip_ = false;
  double begun_ = 0;  // completed fraction when this process began
  Seconds trained_;   // time in steps, including earlier processes
};

}  // namespace systole::cli
