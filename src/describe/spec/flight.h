#pragma once
// The flight log of one rank: what it does now, the time of its last steps by stage, and the cost of each collective.
// It is a mapped file: the rank writes it without system calls, the agent reads it meanwhile, and it survives SIGKILL.
//
// Each rank measures durations on its own clock, and no reader compares timestamps of two ranks, so clocks may
// disagree. Ranks synchronize in their collectives, so a step takes equally long on all of them. Therefore the rank
// that waited least is the straggler.
//
// The file, in 8-byte words. Times are seconds of the rank's steady clock, as f64:
//   0  magic "SYSFLT\1"   1 process   2 rank   3 ranks   4 generation   5 hash of the launch   6 opened   7 zero
//   8  now: stage, since, step, stage changes so far, site + 1 or 0, sequence, site entered, awaited peer + 1 or 0,
//      1 when it awaits room to send, position, awaiting since
//   24 marks: the first moment of each FlightMark; 0: not yet
//   32 seconds in each stage, since the beginning
//   48 steps ended   49 sites in use   50 ErrorCode of the failure   52 24 words of text: why it failed
//   80 the last kFlightSteps steps, each: step, ended, seconds in each stage, two of zero
//      then kFlightSites sites, each: runs, seconds waited, seconds transferring, the longest wait, 12 words of name
// The writer stores a step's number last, so a reader never takes a half-written record for a complete one.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/mapped_words.h"
#include "ground/base/units.h"

namespace systole {

// What a rank does, finer than Category. Each moment belongs to exactly one stage.
enum class RankStage : std::uint8_t {
  startup,
  compile,
  restore,
  data_wait,
  forward,
  backward,
  reduce,  // local reduction of gradients
  update,
  waiting,   // in a collective, for bytes or room of another rank
  transfer,  // in a collective: sending, receiving and adding up
  snapshot,
  checkpoint,
  evaluation,
  logging,
  cores,  // ready to run, but descheduled by the machine
  other,
};
constexpr int kNumStages = 16;
const char* name_of(RankStage stage);  // "data_wait"
const char* doing(RankStage stage);    // "waiting for rows", for sentences
bool is_own(RankStage stage);          // all but waiting and cores: time that the rank itself is responsible for

using StageTimes = std::array<Seconds, kNumStages>;
inline Seconds& at(StageTimes& times, RankStage stage) { return times[static_cast<std::size_t>(stage)]; }
inline Seconds at(const StageTimes& times, RankStage stage) { return times[static_cast<std::size_t>(stage)]; }
Seconds own_time(const StageTimes& times);
Seconds whole_time(const StageTimes& times);

enum class FlightMark : std::uint8_t { connected, restored, first_step, ended };  // connected: all ranks are
constexpr int kNumFlightMarks = 4;

constexpr int kFlightSteps = 32, kFlightSites = 64;

struct FlightIdentity {
  std::int64_t process = 0, rank = 0, ranks = 1, generation = 0;
  std::uint64_t launch = 0;  // hash that distinguishes launches in one folder
  Seconds opened;
};

struct FlightNow {
  RankStage stage = RankStage::startup;
  Seconds since;
  std::int64_t step = 0;
  std::uint64_t changes = 0;
  int site = -1;  // the collective it is in
  std::uint32_t sequence = 0;
  Seconds entered;
  int awaited = -1;  // the rank it waits for
  bool to_send = false;
  // Number of the awaited exchange: ranks that do the same pass the same positions, in the same order.
  std::uint64_t position = 0;
  Seconds awaiting;
};

struct FlightStep {
  std::int64_t step = 0;
  Seconds ended;
  StageTimes seconds{};
};

struct FlightSite {
  std::string name;  // "all_reduce f32[1024] over data"
  std::int64_t runs = 0;
  Seconds waited, transfer, longest;
};

// The content of a log, parsed.
struct Flight {
  FlightIdentity identity;
  FlightNow now;
  std::array<Seconds, kNumFlightMarks> marks{};
  StageTimes totals{};
  std::int64_t steps = 0;
  std::vector<FlightStep> recent;  // oldest first
  std::vector<FlightSite> sites;
  std::string failed;                // why it ended; empty: it did not, or was killed before it could tell
  ErrorCode code = ErrorCode::none;  // of that failure
  bool has(FlightMark mark) const { return marks[static_cast<std::size_t>(mark)] != Seconds(); }
};
// Errors: corrupt (no flight log, or cut short).
Result<Flight> parse_flight(const std::vector<std::uint64_t>& words, std::string_view name);

// The writer's side. For one thread, except the calls about sites. Allocates nothing after its creation.
class FlightLog {
 public:
  explicit FlightLog(const FlightIdentity& identity);  // in memory
  // Errors: as MappedWords::create.
  static Result<std::unique_ptr<FlightLog>> create(const std::string& path, const FlightIdentity& identity);

  void enter(RankStage stage, Seconds now);
  void spent(RankStage stage, Seconds time);  // adds to the totals
  void set_step(std::int64_t step);
  void step_ended(std::int64_t step, Seconds now, const StageTimes& seconds);
  void mark(FlightMark mark, Seconds now);  // only the first call per mark counts
  // The index of a collective, by its name. When the table is full, further collectives share the last index.
  int add_site(std::string_view name);
  void in_site(int site, std::uint32_t sequence, Seconds now);
  void left_site(int site, Seconds waited, Seconds transfer);
  void awaits(int peer, bool to_send, std::uint64_t position, Seconds now);  // peer -1: nobody
  void failed(std::string_view why, ErrorCode code = ErrorCode::none);

  Flight read() const;

 private:
  FlightLog(std::unique_ptr<MappedWords> words, const FlightIdentity& identity);
  void add(std::size_t place, Seconds time);
  std::unique_ptr<MappedWords> words_;
  std::uint64_t changes_ = 0;
  std::int64_t steps_ = 0;
  int sites_ = 0;
};

}  // namespace systole
