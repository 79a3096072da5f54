#include "describe/spec/flight.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace systole {
namespace {

constexpr std::uint64_t kMagic = 0x0154'4c46'5359'53ULL;  // "SYSFLT\1"
constexpr std::size_t kNow = 8, kMarks = 24, kTotals = 32, kSteps = 48, kSites = 49, kCode = 50, kFailed = 52,
                      kFailedWords = 24, kRecords = 80, kStepWords = 20, kSiteWords = 16, kNameAt = 4, kNameWords = 12;
constexpr std::size_t kSitesBegin = kRecords + kStepWords * kFlightSteps;
constexpr std::size_t kWords = kSitesBegin + kSiteWords * kFlightSites;
static_assert(kStepWords >= 3 + kNumStages && kTotals + kNumStages == kSteps);

struct StageRow {
  const char *name, *doing;
};
constexpr std::array<StageRow, kNumStages> kRows{{
    {"startup", "starting up"},
    {"compile", "compiling"},
    {"restore", "reading a checkpoint back"},
    {"data_wait", "waiting for rows"},
    {"forward", "in forward"},
    {"backward", "in backward"},
    {"reduce", "reducing gradients"},
    {"update", "in update"},
    {"waiting", "waiting for other ranks"},
    {"transfer", "transferring"},
    {"snapshot", "in snapshot"},
    {"checkpoint", "waiting for a checkpoint to be written"},
    {"evaluation", "in evaluation"},
    {"logging", "logging"},
    {"cores", "waiting for a core"},
    {"other", "between stages"},
}};

std::uint64_t word(Seconds time) { return std::bit_cast<std::uint64_t>(time.count()); }
Seconds seconds(std::uint64_t bits) { return Seconds(std::bit_cast<double>(bits)); }
std::size_t place_of_step(std::int64_t nth) {
  return kRecords + kStepWords * static_cast<std::size_t>(nth % kFlightSteps);
}
std::size_t place_of_site(int site) { return kSitesBegin + kSiteWords * static_cast<std::size_t>(site); }
std::size_t index_of(RankStage stage) { return static_cast<std::size_t>(stage); }

std::string text_at(const std::vector<std::uint64_t>& words, std::size_t place, std::size_t count) {
  std::string text(count * sizeof(std::uint64_t), '\0');
  std::memcpy(text.data(), words.data() + place, text.size());
  return text.substr(0, text.find('\0'));
}

template <std::size_t kCount>
void store_text(MappedWords& words, std::size_t place, std::string_view text) {
  std::array<std::uint64_t, kCount> packed{};
  std::memcpy(packed.data(), text.data(), std::min(text.size(), sizeof packed - 1));
  for (std::size_t i = 0; i < kCount; ++i) words.store(place + i, packed[i]);
}

}  // namespace

const char* name_of(RankStage stage) { return kRows[index_of(stage)].name; }
const char* doing(RankStage stage) { return kRows[index_of(stage)].doing; }
bool is_own(RankStage stage) { return stage != RankStage::waiting && stage != RankStage::cores; }

Seconds own_time(const StageTimes& times) {
  return whole_time(times) - at(times, RankStage::waiting) - at(times, RankStage::cores);
}

Seconds whole_time(const StageTimes& times) {
  Seconds sum;
  for (const Seconds time : times) sum += time;
  return sum;
}

FlightLog::FlightLog(std::unique_ptr<MappedWords> words, const FlightIdentity& identity) : words_(std::move(words)) {
  const auto number = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  words_->store(1, number(identity.process));
  words_->store(2, number(identity.rank));
  words_->store(3, number(identity.ranks));
  words_->store(4, number(identity.generation));
  words_->store(5, identity.launch);
  words_->store(6, word(identity.opened));
  words_->store(kNow + 1, word(identity.opened));
  words_->store(0, kMagic);
}

FlightLog::FlightLog(const FlightIdentity& identity) : FlightLog(std::make_unique<MappedWords>(kWords), identity) {}

Result<std::unique_ptr<FlightLog>> FlightLog::create(const std::string& path, const FlightIdentity& identity) {
  std::unique_ptr<MappedWords> words = TRY(MappedWords::create(path, kWords));
  return std::unique_ptr<FlightLog>(new FlightLog(std::move(words), identity));  // the constructor is private
}

void FlightLog::enter(RankStage stage, Seconds now) {
  words_->store(kNow, index_of(stage));
  words_->store(kNow + 1, word(now));
  words_->store(kNow + 3, ++changes_);
}

void FlightLog::add(std::size_t place, Seconds time) {
  words_->store(place, word(seconds(words_->load(place)) + time));
}

void FlightLog::spent(RankStage stage, Seconds time) { add(kTotals + index_of(stage), time); }

void FlightLog::set_step(std::int64_t step) { words_->store(kNow + 2, static_cast<std::uint64_t>(step)); }

void FlightLog::step_ended(std::int64_t step, Seconds now, const StageTimes& times) {
  const std::size_t place = place_of_step(steps_);
  words_->store(place, 0);
  words_->store(place + 1, word(now));
  for (std::size_t s = 0; s < times.size(); ++s) words_->store(place + 2 + s, word(times[s]));
  words_->store(place, static_cast<std::uint64_t>(step));
  words_->store(kSteps, static_cast<std::uint64_t>(++steps_));
  mark(FlightMark::first_step, now);
}

void FlightLog::mark(FlightMark mark, Seconds now) {
  const std::size_t place = kMarks + static_cast<std::size_t>(mark);
  if (words_->load(place) == 0) words_->store(place, word(now));
}

int FlightLog::add_site(std::string_view name) {
  if (sites_ == kFlightSites) return kFlightSites - 1;
  const int site = sites_++;
  if (sites_ == kFlightSites) name = "all others";
  store_text<kNameWords>(*words_, place_of_site(site) + kNameAt, name);
  words_->store(kSites, static_cast<std::uint64_t>(sites_));
  return site;
}

void FlightLog::in_site(int site, std::uint32_t sequence, Seconds now) {
  words_->store(kNow + 5, sequence);
  words_->store(kNow + 6, word(now));
  words_->store(kNow + 4, static_cast<std::uint64_t>(site + 1));
}

void FlightLog::left_site(int site, Seconds waited, Seconds transfer) {
  const std::size_t place = place_of_site(site);
  words_->store(place, words_->load(place) + 1);
  add(place + 1, waited);
  add(place + 2, transfer);
  if (waited > seconds(words_->load(place + 3))) words_->store(place + 3, word(waited));
  words_->store(kNow + 4, 0);
}

void FlightLog::failed(std::string_view why, ErrorCode code) {
  words_->store(kCode, static_cast<std::uint64_t>(code));
  store_text<kFailedWords>(*words_, kFailed, why);
}

void FlightLog::awaits(int peer, bool to_send, std::uint64_t position, Seconds now) {
  words_->store(kNow + 8, to_send ? 1 : 0);
  words_->store(kNow + 9, position);
  words_->store(kNow + 10, word(now));
  words_->store(kNow + 7, static_cast<std::uint64_t>(peer + 1));
}

Flight FlightLog::read() const { return parse_flight(words_->copy(), "the flight log").value(); }

Result<Flight> parse_flight(const std::vector<std::uint64_t>& words, std::string_view name) {
  if (words.size() != kWords || words[0] != kMagic)
    return error(ErrorKind::corrupt, "'{}' is no flight log: {} bytes", name, words.size() * sizeof(std::uint64_t));
  const auto number = [&](std::size_t place) { return static_cast<std::int64_t>(words[place]); };
  const auto stage_at = [&](std::size_t place) {
    return words[place] < kNumStages ? static_cast<RankStage>(words[place]) : RankStage::other;
  };
  Flight flight;
  flight.identity = {number(1), number(2), number(3), number(4), words[5], seconds(words[6])};
  FlightNow& now = flight.now;
  now = {stage_at(kNow),
         seconds(words[kNow + 1]),
         number(kNow + 2),
         words[kNow + 3],
         static_cast<int>(number(kNow + 4)) - 1,
         static_cast<std::uint32_t>(words[kNow + 5]),
         seconds(words[kNow + 6]),
         static_cast<int>(number(kNow + 7)) - 1,
         words[kNow + 8] != 0,
         words[kNow + 9],
         seconds(words[kNow + 10])};
  for (std::size_t m = 0; m < kNumFlightMarks; ++m) flight.marks[m] = seconds(words[kMarks + m]);
  for (std::size_t s = 0; s < kNumStages; ++s) flight.totals[s] = seconds(words[kTotals + s]);
  flight.steps = number(kSteps);
  flight.failed = text_at(words, kFailed, kFailedWords);
  flight.code = error_code_of(words[kCode]).value_or(ErrorCode::none);
  for (std::int64_t n = std::max<std::int64_t>(0, flight.steps - kFlightSteps); n < flight.steps; ++n) {
    const std::size_t place = place_of_step(n);
    FlightStep step{number(place), seconds(words[place + 1]), {}};
    if (step.step == 0) continue;  // being written
    for (std::size_t s = 0; s < kNumStages; ++s) step.seconds[s] = seconds(words[place + 2 + s]);
    if (flight.recent.empty() || step.step > flight.recent.back().step) flight.recent.push_back(step);
  }
  const auto sites = static_cast<int>(std::min<std::uint64_t>(words[kSites], kFlightSites));
  if (now.site >= sites) now.site = -1;
  for (int s = 0; s < sites; ++s) {
    const std::size_t place = place_of_site(s);
    flight.sites.push_back({text_at(words, place + kNameAt, kNameWords), number(place), seconds(words[place + 1]),
                            seconds(words[place + 2]), seconds(words[place + 3])});
  }
  return flight;
}

}  // namespace systole
