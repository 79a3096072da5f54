#pragma once
// Runs on many ranks as processes, for laws: started, disturbed, and looked over for what they left behind.

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "describe/spec/run.h"
#include "laws/process_job.h"

namespace systole::laws {

class RankedRuns : public ::testing::Test {
 protected:
  void SetUp() override;
  // No process of a run is left, no zombie, no memory of ranks, no temporary file.
  void TearDown() override;

  // `run job.yaml` into the folder `run`, in rows that 2 and 4 ranks divide.
  static std::vector<std::string> words(const std::string& run, std::vector<std::string> more);
  Process start(const std::string& run, std::vector<std::string> words) const;
  // What its agent and ranks said so far.
  std::string said(const std::string& run) const;

  // Of rank 0; empty before the run began.
  std::vector<Event> events(const std::string& run) const;
  std::vector<Event> agent_events(const std::string& run) const;
  std::int64_t last_step(const std::string& run) const;
  // Bounded; false when the agent ended first.
  bool wait_for_step(Process& agent, const std::string& run, std::int64_t step) const;
  bool wait_until(Process& agent, const std::function<bool()>& what, Seconds longest = Seconds(60.0)) const;

  // Living `systole rank` processes whose parent is the agent, and the rank of each (-1: not to be told).
  static std::vector<pid_t> ranks_of(pid_t agent);
  static pid_t pid_of_rank(pid_t agent, int rank);
  void end_at_once(Process& agent) const;  // as two Ctrl-C do, and waits

  Workshop shop_;

 private:
  std::set<std::string> before_;
};

}  // namespace systole::laws
