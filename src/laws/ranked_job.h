#pragma once
// Runs on several ranks as processes, for laws: starts and disturbs them, and checks what they left behind.

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
  // Checks that no process of a run is left, no zombie, no shared memory of ranks, no temporary file.
  void TearDown() override;

  // `run job.yaml` into the folder `run`, with rows divisible by 2 and 4 ranks.
  static std::vector<std::string> words(const std::string& run, std::vector<std::string> more);
  Process start(const std::string& run, std::vector<std::string> words) const;
  // Output of its agent and ranks so far.
  std::string said(const std::string& run) const;

  // Events of rank 0; empty before the run began.
  std::vector<Event> events(const std::string& run) const;
  std::vector<Event> agent_events(const std::string& run) const;
  std::int64_t last_step(const std::string& run) const;
  // Waits a bounded time; false if the agent ended first.
  bool wait_for_step(Process& agent, const std::string& run, std::int64_t step) const;
  bool wait_until(Process& agent, const std::function<bool()>& what, Seconds longest = Seconds(60.0)) const;

  // Living `systole rank` processes whose parent is the agent, ordered by rank (-1: unknown).
  static std::vector<pid_t> ranks_of(pid_t agent);
  static pid_t pid_of_rank(pid_t agent, int rank);
  void end_at_once(Process& agent) const;  // like two Ctrl-C; waits for the end

  Workshop shop_;

 private:
  std::set<std::string> before_;
};

}  // namespace systole::laws
