#pragma once
// What a person sees of a run while it goes on: one line drawn over itself on a terminal, plain lines otherwise. Called
// on the thread that writes the events, never on the step's.

#include "describe/spec/plan.h"
#include "operate/cli/printer.h"

namespace systole::cli {

class ProgressLines {
 public:
  ProgressLines(Printer& out, const Plan& plan, std::int64_t every) : out_(out), plan_(plan), every_(every) {}
  // Where this process begins: step and tokens done, and time that counts against train.time. Before the first event.
  void begin(std::int64_t step, std::int64_t tokens, Seconds trained);
  void see(const Event& event);

 private:
  void step(const StepEnded& step, Seconds at);
  // Fraction of the run that is done, by whatever ends it; at most 1.
  double fraction(std::int64_t step, std::int64_t tokens, Seconds trained) const;
  // "  2 min 05 s left", from what this process did in its time; empty when nothing is left, or not known.
  std::string left(double done, Seconds at) const;

  Printer& out_;
  const Plan& plan_;
  std::int64_t every_;
  double shown_loss_ = 0;  // a running mean
  bool told_of_skip_ = false;
  double begun_ = 0;  // fraction that was done when this process began
  Seconds trained_;   // in steps, by earlier processes too
};

}  // namespace systole::cli
