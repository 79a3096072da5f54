#pragma once
// Events of a run, appended to its event file, one JSON object per line. A process writes only through the sink it was
// given. The index, `why` and the ledger are derived by reading events.
//
//   {"event":"opened","t":0,"version":1,"run":"quickstart-1","at":"2026-11-21T14:03:00.000Z","rank":0,...}
//   {"event":"step_ended","t":12.25,"step":40,"loss":5.1,...,"seconds":{"compute":0.17,"update":0.01}}
//
// Invariants: each process has its own file, whose first line is `opened`. `t` is seconds since then and never
// decreases. A last line without a newline was cut by a kill and is not an event. Numbers read back exactly.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

constexpr int kRunVersion = 1;

// What a rank spends time on. Each moment belongs to exactly one category. The Plan has the same categories.
enum class Category : std::uint8_t {
  startup,     // reading documents and data, opening the run
  compile,     // building and compiling the Program, creating kernels, allocating the arena
  restore,     // reading a checkpoint back
  data_wait,   // waiting for the next rows
  compute,     // forward and backward functions
  reduce,      // collectives that are not overlapped
  update,      // the optimizer
  snapshot,    // copying the state for a checkpoint
  checkpoint,  // the step's thread waiting for a checkpoint to be written
  evaluation,  // the held-out set
  logging,     // writing events and lines
  other,       // the rest, measured: at most 2%
};
constexpr int kNumCategories = 12;

const char* name_of(Category category);   // "data_wait"
const char* describe(Category category);  // the comment above, in words for people
std::optional<Category> category_named(std::string_view name);

// Seconds in each category.
class TimeByCategory {
 public:
  Seconds& operator[](Category c) { return seconds_[static_cast<std::size_t>(c)]; }
  Seconds operator[](Category c) const { return seconds_[static_cast<std::size_t>(c)]; }
  Seconds total() const;
  TimeByCategory& operator+=(const TimeByCategory& other);
  bool operator==(const TimeByCategory&) const = default;

 private:
  std::array<Seconds, kNumCategories> seconds_{};
};

// A process started work on the run.
struct Opened {
  std::string run, at;  // at: date and time, ISO 8601 UTC
  std::int64_t rank = 0, process = 0;
  std::string host, command;
  std::string program_hash, workload_hash, data_hash,
      numerics;                // numerics: fingerprint of everything that determines the bits
  std::int64_t from_step = 0;  // 0 for a new run, else the step of the checkpoint it resumes from
  bool operator==(const Opened&) const = default;
};
// Training step `step` (1-based) ended.
struct StepEnded {
  std::int64_t step = 0;
  double loss = 0;  // mean negative log likelihood per label in nats, or the mean squared error
  double gradient_norm = 0, rate = 0;
  std::int64_t labels = 0, tokens = 0;  // tokens: of all rows so far
  bool skipped = false;                 // the gradient was not finite and the state is unchanged
  std::optional<double> dropped;        // fraction of (token, expert) choices that were dropped; nothing: not counted
  TimeByCategory seconds;               // since the previous step ended
  bool operator==(const StepEnded&) const = default;
};
struct Evaluated {
  std::int64_t step = 0;
  double loss = 0;  // mean per label
  std::optional<double> bits_per_byte;
  std::int64_t labels = 0, bytes = 0;
  std::optional<std::vector<std::pair<std::string, double>>> source_losses;  // of a mixture: those of its sources
  bool operator==(const Evaluated&) const = default;
};
struct CheckpointSaved {
  std::int64_t step = 0;
  std::string id;
  Bytes bytes{};  // written for it
  Seconds snapshot{}, write{};
  bool operator==(const CheckpointSaved&) const = default;
};
struct CheckpointRemoved {
  std::int64_t step = 0;
  std::string id;
  bool operator==(const CheckpointRemoved&) const = default;
};
// Measured memory.
struct MemoryMeasured {
  std::map<std::string, Bytes> by_owner;  // arena, snapshot, staging, data, libraries, ...
  Bytes resident{}, arena_high_water{};
  bool operator==(const MemoryMeasured&) const = default;
};
// Counted work, over all steps of this process so far.
struct WorkCounted {
  std::int64_t steps = 0;
  Flops flops{};
  Bytes moved{}, sent{};
  std::vector<std::pair<std::string, Seconds>> compute_by_kind;  // of the steps; empty if the device does not report it
  // Of `steps`, by the length of their rows, as the plan's shapes; nothing: rows of one length.
  std::optional<std::vector<std::pair<std::string, std::int64_t>>> steps_by_length;
  // Of data_wait, by what was waited for: read, pack, copy; nothing if it is not counted.
  std::optional<std::vector<std::pair<std::string, Seconds>>> waits_by_stage;
  bool operator==(const WorkCounted&) const = default;
};
// A message for people: an op was decomposed, a retry, a stall.
struct Note {
  std::string level, text;  // level: "info", "warning", "error"
  std::string what;         // the component concerned: "data", "checkpoint", ...
  Seconds took{};           // 0 when no duration applies
  bool operator==(const Note&) const = default;
};
// The process ended in order. A killed process leaves no such event.
struct Stopped {
  std::string reason;  // "finished", "signal", "budget", "diverged", "error"; run_state.h maps it to a state
  std::string detail;  // the message of an error
  std::int64_t step = 0;
  bool saved = false;      // the state of `step` is in a checkpoint
  TimeByCategory seconds;  // of the whole process
  bool operator==(const Stopped&) const = default;
};

// The agent of many ranks saw one rank hold up the others.
struct StragglerFound {
  std::string kind;  // "slow", "stuck", "lost_message", "mismatch"
  std::int64_t rank = 0, step = 0;
  std::string stage, collective;  // stage: where that rank was; collective: where the others waited
  Seconds took{}, usual{};
  std::string text;  // the sentence shown to people
  bool operator==(const StragglerFound&) const = default;
};
// The agent of many ranks began generation `generation` after the previous one was lost. The durations follow each
// other, from the last sign of life of the lost rank to the next completed step.
struct Recovered {
  std::int64_t generation = 0;
  std::string cause;
  Seconds detected{}, ended{}, restarted{}, restored{}, stepped{};
  // The step of the checkpoint it resumes from, 0: from the start; and the number of completed steps that are repeated.
  std::optional<std::int64_t> from_step = {}, steps_lost = {};
  Seconds total() const { return detected + ended + restarted + restored + stepped; }
  bool operator==(const Recovered&) const = default;
};

using EventBody = std::variant<Opened, StepEnded, Evaluated, CheckpointSaved, CheckpointRemoved, MemoryMeasured,
                               WorkCounted, Note, Stopped, StragglerFound, Recovered>;
struct Event {
  Seconds t{};  // since the process opened the run
  EventBody body;
  bool operator==(const Event&) const = default;
};

std::vector<std::string> names_of_events();    // in the order of EventBody
const char* name_of(const EventBody& body);    // "step_ended"
std::string to_json_line(const Event& event);  // with its newline; numbers read back exactly
// Errors: corrupt (no JSON, a field missing or of the wrong type); unsupported (an `opened` of a newer version, or an
// unknown event, by name). `where` is for messages.
Result<Event> parse_event(std::string_view line, const Where& where);
// All events of a file, without a last line that lacks its newline. Errors: as parse_event, with file and line.
Result<std::vector<Event>> parse_events(std::string_view text, const std::string& filename);

// Where a process puts its events. Thread-safe. An implementation may buffer; after `flush` all added events survive a
// kill of the process.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void add(const Event& event) = 0;
  virtual Status flush() = 0;
};

// For tests, and for runs without a folder. Not thread-safe.
class EventList final : public EventSink {
 public:
  void add(const Event& event) override { events.push_back(event); }
  Status flush() override { return Done{}; }
  std::vector<Event> events;
};

// The canonical loss log of a run: each step once, in order. `processes`: the events of each, in the order in which
// they opened the run. A process that resumes from step n replaces earlier steps above n.
std::vector<StepEnded> canonical_steps(std::span<const std::vector<Event>> processes);
// The same with the events of all processes in one list.
std::vector<StepEnded> canonical_steps(const std::vector<Event>& events);

}  // namespace systole
