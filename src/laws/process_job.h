#pragma once
// Laws at the level of processes: a folder with a made-up text and a tiny workload, this build's `systole` run in it,
// and what its runs leave behind.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "describe/spec/run.h"
#include "ground/process/capture.h"
#include "ground/process/spawn.h"
#include "laws/test_length.h"

namespace systole::laws {

// Compiled with a sanitizer: times and memory are meaningless.
bool is_sanitized();
// Records a line with the result of `make test-long`.
void note(const std::string& text);

// A process that worked on a run: the step it says it began from, and the first step that it ended, if any.
struct Turn {
  std::int64_t from_step = 0;
  std::optional<std::int64_t> first = {};
};

class Workshop {
 public:
  Workshop();   // a temporary folder with text.txt and job.yaml
  ~Workshop();  // deletes the folder
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  std::string path(const std::string& leaf) const { return root_ + "/" + leaf; }
  void write(const std::string& leaf, const std::string& text) const;
  void write_secret(const std::string& leaf, const std::string& text) const;  // readable by the owner only

  // `systole ARGUMENTS...` in the folder, ready to start.
  Command command(std::vector<std::string> arguments) const;
  Captured systole(std::vector<std::string> arguments, Seconds timeout = Seconds(120.0)) const;

  // Events of all processes of a run, in order.
  std::vector<Event> events(const std::string& run) const;
  // Differences between a run's counted work and its plan: FLOPs, bytes moved and sent over `steps`, and the arena's
  // high-water mark. "": all equal, as integers.
  std::string unplanned_work(const std::string& run, std::int64_t steps) const;
  // Processes that opened a run, in order.
  std::vector<Turn> turns(const std::string& run) const;
  // The step of a run's newest checkpoint, by the names of its manifests; 0: it has none.
  std::int64_t newest_saved(const std::string& run) const;
  // What contradicts that the run's last process went on from the state of step `saved`, with the step after it. "":
  // nothing. Equal results are no proof: a run that begins again from the start ends with the same bits.
  std::string not_resumed(const std::string& run, std::int64_t saved) const;
  // Hash of the newest checkpoint's state. REQUIRES: it is of `step`.
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
