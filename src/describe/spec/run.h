#pragma once
// A run as it tells of itself: events, appended to the run's event file one JSON object a line. A process writes only
// through the sink it was handed; everything else (the index, `why`, the ledger) is derived by reading.
//
//   {"event":"opened","t":0,"version":1,"run":"quickstart-1","at":"2026-11-21T14:03:00.000Z","rank":0,...}
//   {"event":"step_ended","t":12.25,"step":40,"loss":5.1,...,"seconds":{"compute":0.17,"update":0.01}}
//
// Invariants: each process has a file of its own, whose first line is `opened`; `t` is seconds since then and never
// falls; a last line without a newline was cut by a kill and is not an event. Numbers read back to the same value.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

constexpr int kRunVersion = 1;

// What a moment of a rank is spent on; each moment is in exactly one. Each has a mate in the plan.
enum class Category : std::uint8_t {
  startup,     // reading documents and data, opening the run
  compile,     // building and compiling the Program, creating kernels, allocating the arena
  restore,     // reading a checkpoint back
  data_wait,   // waiting for the next rows
  compute,     // forward and backward functions
  reduce,      // collectives that nothing hides
  update,      // the optimizer
  snapshot,    // copying the state for a checkpoint
  checkpoint,  // the step's thread waiting for a checkpoint to be written
  evaluation,  // the held-out set
  logging,     // writing events and lines
  other,       // the rest, measured: at most 2%
};
constexpr int kNumCategories = 12;

const char* name_of(Category category);   // "data_wait"
const char* describe(Category category);  // the comment above, for people
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

// A process began to work on the run.
struct Opened {
  std::string run, at;  // at: calendar, ISO 8601 UTC
  std::int64_t rank = 0, process = 0;
  std::string host, command;
  std::string program_hash, workload_hash, data_hash,
      numerics;                // numerics: fingerprint of everything the bits depend on
  std::int64_t from_step = 0;  // 0 for a new run, else the step of the checkpoint that it goes on from
  bool operator==(const Opened&) const = default;
};
// Training step `step` (1-based) ended.
struct StepEnded {
  std::int64_t step = 0;
  double loss = 0;  // mean negative log likelihood per label in nats, or the mean squared error
  double gradient_norm = 0, rate = 0;
  std::int64_t labels = 0, tokens = 0;  // tokens: of all rows so far
  bool skipped = false;                 // the gradient was not finite and the state stayed as it was
  std::optional<double> dropped;        // share of the choices of experts that found no place; nothing: not counted
  TimeByCategory seconds;               // since the step before ended
  bool operator==(const StepEnded&) const = default;
};
struct Evaluated {
  std::int64_t step = 0;
  double loss = 0;  // mean per label
  std::optional<double> bits_per_byte;
  std::int64_t labels = 0, bytes = 0;
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
// Memory as it was counted.
struct MemoryMeasured {
  std::map<std::string, Bytes> by_owner;  // arena, snapshot, staging, data, libraries, ...
  Bytes resident{}, arena_high_water{};
  bool operator==(const MemoryMeasured&) const = default;
};
// Work as it was counted, over all steps of this process so far.
struct WorkCounted {
  std::int64_t steps = 0;
  Flops flops{};
  Bytes moved{}, sent{};
  std::vector<std::pair<std::string, Seconds>> compute_by_kind;  // of the steps; empty where the device cannot tell
  bool operator==(const WorkCounted&) const = default;
};
// Something a person should know: a decomposition that served an op, a retry, a stall.
struct Note {
  std::string level, text;  // level: "info", "warning", "error"
  std::string what;         // the owner of the trouble: "data", "checkpoint", ...
  Seconds took{};           // 0 when it is not about time
  bool operator==(const Note&) const = default;
};
// The process ended in order; a killed one leaves none.
struct Stopped {
  std::string reason;  // "finished", "signal", "diverged", "error"
  std::string detail;  // of an error: its text
  std::int64_t step = 0;
  bool saved = false;      // the state of `step` is in a checkpoint
  TimeByCategory seconds;  // of this process, all of it
  bool operator==(const Stopped&) const = default;
};

// The agent of many ranks saw one hold the others up.
struct HeldUp {
  std::string kind;  // "slow", "stuck", "lost_message", "mismatch"
  std::int64_t rank = 0, step = 0;
  std::string stage, collective;  // that it was in; that the others waited in
  Seconds took{}, usual{};
  std::string text;  // the sentence that was told
  bool operator==(const HeldUp&) const = default;
};
// The agent of many ranks began generation `generation` after another one was lost; the parts follow each other, from
// the last sign of the lost rank to the next step that ended.
struct Recovered {
  std::int64_t generation = 0;
  std::string cause;
  Seconds detected{}, ended{}, restarted{}, restored{}, stepped{};
  // The step of the checkpoint that it goes on from, 0: from the start; and how many that had ended come again.
  std::optional<std::int64_t> from_step = {}, steps_lost = {};
  Seconds total() const { return detected + ended + restarted + restored + stepped; }
  bool operator==(const Recovered&) const = default;
};

using EventBody = std::variant<Opened, StepEnded, Evaluated, CheckpointSaved, CheckpointRemoved, MemoryMeasured,
                               WorkCounted, Note, Stopped, HeldUp, Recovered>;
struct Event {
  Seconds t{};  // since the process opened the run
  EventBody body;
  bool operator==(const Event&) const = default;
};

std::vector<std::string> names_of_events();    // in EventBody's order
const char* name_of(const EventBody& body);    // "step_ended"
std::string to_json_line(const Event& event);  // with its newline; numbers read back to the same value
// Errors: corrupt (no JSON, a field missing or of the wrong type); unsupported (an `opened` of a newer version, an
// event that this version does not know, by name). `where` is for messages.
Result<Event> parse_event(std::string_view line, const Where& where);
// A whole file; a last line without a newline is left out. Errors: as parse_event, with file and line.
Result<std::vector<Event>> parse_events(std::string_view text, const std::string& filename);

// Where a process puts its events. Thread-safe; an implementation may buffer, `flush` makes what was added durable
// against a kill of the process.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void add(const Event& event) = 0;
  virtual Status flush() = 0;
};

// For tests, and for runs that are not kept. Not thread-safe.
class EventList final : public EventSink {
 public:
  void add(const Event& event) override { events.push_back(event); }
  Status flush() override { return Done{}; }
  std::vector<Event> events;
};

// The canonical loss log of a run's processes, their events in the order in which they were opened: each step once, in
// order. A process that goes on from step n takes back the steps above n of those before it.
std::vector<StepEnded> canonical_steps(const std::vector<Event>& events);

}  // namespace systole
