#pragma once
// The flight log of one rank: where it is, what its last steps were spent on, and what each of its collectives cost it,
// in a mapped file that is written without a system call, read by the agent while the rank runs, and left behind by
// SIGKILL.
//
// Each rank measures durations on its own clock and nobody compares moments of two ranks, so clocks may disagree. That
// is enough: ranks meet in their collectives, so a step takes all of them equally long, and who waited least for the
// others is the one that the others waited for.
//
// The file, in 8-byte words; times are seconds of the rank's steady clock, as f64:
//   0  magic "SYSFLT\1"   1 process   2 rank   3 ranks   4 generation   5 launch, hashed   6 opened   7 zero
//   8  now: stage, since, step, changes of stage so far, site + 1 or 0, sequence, site entered, awaited peer + 1 or 0,
//      1 when it awaits room to send, position, awaiting since
//   24 marks: the first moment of each FlightMark; 0: not yet
//   32 seconds in each stage, since the beginning
//   48 steps ended   49 sites in use   52 24 words of text: why it failed
//   80 the last kFlightSteps steps, each: step, ended, seconds in each stage, two of zero
//      then kFlightSites sites, each: runs, seconds waited, seconds transferring, the longest wait, 12 words of name
// A step's number is written last, so that whoever reads takes no half-written record for a whole one.

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

// What a rank does, finer than Category: each moment is in exactly one.
enum class RankStage : std::uint8_t {
  startup,
  compile,
  restore,
  data_wait,
  forward,
  backward,
  reduce,  // of gradients, at home
  update,
  waiting,   // in a collective, for bytes or room of another rank
  transfer,  // in a collective, sending, taking and adding up
  snapshot,
  checkpoint,
  evaluation,
  logging,
  cores,  // ready to run, and the machine ran something else
  other,
};
constexpr int kNumStages = 16;
const char* name_of(RankStage stage);  // "data_wait"
const char* doing(RankStage stage);    // "waiting for rows", for sentences
bool is_own(RankStage stage);          // all but waiting and cores: what a rank answers for

using StageTimes = std::array<Seconds, kNumStages>;
inline Seconds& at(StageTimes& times, RankStage stage) { return times[static_cast<std::size_t>(stage)]; }
inline Seconds at(const StageTimes& times, RankStage stage) { return times[static_cast<std::size_t>(stage)]; }
Seconds own_time(const StageTimes& times);
Seconds whole_time(const StageTimes& times);

enum class FlightMark : std::uint8_t { met, restored, first_step, ended };  // met: all ranks speak to each other
constexpr int kNumFlightMarks = 4;

constexpr int kFlightSteps = 32, kFlightSites = 64;

struct FlightIdentity {
  std::int64_t process = 0, rank = 0, ranks = 1, generation = 0;
  std::uint64_t launch = 0;  // hash of what makes two launches in one folder different
  Seconds opened;
};

struct FlightNow {
  RankStage stage = RankStage::startup;
  Seconds since;
  std::int64_t step = 0;
  std::uint64_t changes = 0;
  int site = -1;  // the collective that it is in
  std::uint32_t sequence = 0;
  Seconds entered;
  int awaited = -1;  // the rank without which it cannot go on
  bool to_send = false;
  // Which exchange it awaits: ranks that do the same come by the same positions, in the same order.
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

// What a reader finds.
struct Flight {
  FlightIdentity identity;
  FlightNow now;
  std::array<Seconds, kNumFlightMarks> marks{};
  StageTimes totals{};
  std::int64_t steps = 0;
  std::vector<FlightStep> recent;  // oldest first
  std::vector<FlightSite> sites;
  std::string failed;  // why it ended; empty: it did not, or had no time to say
  bool has(FlightMark mark) const { return marks[static_cast<std::size_t>(mark)] != Seconds(); }
};
// Errors: corrupt (no flight log, or cut short).
Result<Flight> parse_flight(const std::vector<std::uint64_t>& words, std::string_view name);

// The writer's side. One thread, but for what is said of sites. Allocates nothing after its creation.
class FlightLog {
 public:
  explicit FlightLog(const FlightIdentity& identity);  // in memory
  // Errors: of MappedWords::create.
  static Result<std::unique_ptr<FlightLog>> create(const std::string& path, const FlightIdentity& identity);

  void enter(RankStage stage, Seconds now);
  void spent(RankStage stage, Seconds time);  // adds to the totals
  void set_step(std::int64_t step);
  void step_ended(std::int64_t step, Seconds now, const StageTimes& seconds);
  void mark(FlightMark mark, Seconds now);  // the first time counts
  // The place of a collective, by its name; the last is for all that have no place of their own.
  int add_site(std::string_view name);
  void in_site(int site, std::uint32_t sequence, Seconds now);
  void left_site(int site, Seconds waited, Seconds transfer);
  void awaits(int peer, bool to_send, std::uint64_t position, Seconds now);  // peer -1: nobody
  void failed(std::string_view why);

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
