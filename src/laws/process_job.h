#pragma once
// Laws at the level of processes: a folder with made-up text and a tiny workload, the `systole` of this build run in
// it, and what its runs left behind.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "describe/spec/run.h"
#include "ground/process/capture.h"
#include "ground/process/spawn.h"

namespace systole::laws {

// SYSTOLE_TEST_LONG: full counts.
bool is_long();
// SYSTOLE_TEST_SEED, or 1.
std::uint64_t test_seed();
// Compiled with a sanitizer: times and memory mean nothing.
bool is_sanitized();
// A line that `make test-long` keeps with the result.
void note(const std::string& text);

class Workshop {
 public:
  Workshop();   // a temporary folder with text.txt and job.yaml
  ~Workshop();  // removes it
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  std::string path(const std::string& leaf) const { return root_ + "/" + leaf; }
  void write(const std::string& leaf, const std::string& text) const;
  void write_secret(const std::string& leaf, const std::string& text) const;  // that only its owner may read

  // `systole ARGUMENTS...` in the folder, ready to start.
  Command command(std::vector<std::string> arguments) const;
  Captured systole(std::vector<std::string> arguments, Seconds timeout = Seconds(120.0)) const;

  // Events of all processes of a run, in order.
  std::vector<Event> events(const std::string& run) const;
  // What a run's events count beside its plan: FLOPs, bytes moved and sent over `steps`, and the arena's high-water
  // mark. "" when all are as planned, as integers.
  std::string unplanned_work(const std::string& run, std::int64_t steps) const;
  // Of the newest checkpoint, which must be of `step`.
  std::string state_hash(const std::string& run, std::int64_t step) const;

 private:
  std::string root_;
};

// The last event of this kind. REQUIRES: there is one.
template <typename Body>
const Body& last_of(const std::vector<Event>& events) {
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    if (const auto* body = std::get_if<Body>(&event->body)) return *body;
  }
  fail(error(ErrorKind::not_found, "no such event"));
}

}  // namespace systole::laws
