#pragma once
// What a person sees of a run while it goes on: one line drawn over itself on a terminal, plain lines otherwise. Called
// on the thread that writes the events, never on the step's.

#include "describe/spec/plan.h"
#include "operate/cli/printer.h"

namespace systole::cli {

class ProgressLines {
 public:
  ProgressLines(Printer& out, const Plan& plan, std::int64_t every) : out_(out), plan_(plan), every_(every) {}
  void see(const Event& event);

 private:
  void step(const StepEnded& step, Seconds at);
  // Fraction of the run that is done, by whatever ends it.
  double fraction(const StepEnded& step, Seconds at) const;

  Printer& out_;
  const Plan& plan_;
  std::int64_t every_;
  double shown_loss_ = 0;  // a running mean
};

}  // namespace systole::cli
