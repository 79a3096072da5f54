#include "operate/run/rank_watch.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "ground/process/machine.h"
#include "operate/observe/rank_files.h"
#include "operate/observe/rank_report.h"
#include "operate/observe/run_files.h"

namespace systole {
namespace {

Seconds newest_of(const Flight& flight) {
  return std::max({flight.now.since, flight.now.entered, flight.now.awaiting});
}

// Whether a rank of this machine is stopped. A process that only reuses its pid has another environment.
bool is_stopped(const FlightIdentity& rank) {
  if (!is_stopped_process(rank.process)) return false;
  std::ifstream file(fmt::format("/proc/{}/environ", rank.process), std::ios::binary);
  const std::string environment{std::istreambuf_iterator<char>(file), {}};
  for (const auto& [name, value] :
       {std::pair("SYSTOLE_RANK", rank.rank), std::pair("SYSTOLE_GENERATION", rank.generation)}) {
    const std::string entry = fmt::format("{}={}", name, value) + '\0';
    const std::size_t at = environment.find(entry);
    if (at == environment.npos || (at > 0 && environment[at - 1] != '\0')) return false;
  }
  return true;
}

StragglerOptions watching() {
  StragglerOptions options;
  options.is_stopped = is_stopped;
  return options;
}

}  // namespace

Result<std::unique_ptr<RankWatch>> RankWatch::open(const std::string& folder, std::uint64_t launch,
                                                   const std::string& command, Clock& clock,
                                                   std::function<void(std::string_view)> tell) {
  std::unique_ptr<Store> store = TRY(open_posix_store(folder));
  TRY(make_dirs_synced(*store, kAgentFolder));
  std::unique_ptr<RankWatch> watch(new RankWatch(folder, launch, std::move(store), clock, std::move(tell)));
  watch->own_ = TRY(open_posix_store(folder + "/" + kAgentFolder));
  watch->events_ = TRY(EventFile::open(*watch->own_, TRY(next_event_file(*watch->own_))));
  Opened opened;
  opened.run = folder;
  opened.at = clock.timestamp();
  opened.rank = -1;
  opened.process = getpid();
  opened.host = host_name();
  opened.command = command;
  watch->add(std::move(opened));
  return watch;
}

RankWatch::RankWatch(std::string folder, std::uint64_t launch, std::unique_ptr<Store> store, Clock& clock,
                     std::function<void(std::string_view)> tell)
    : folder_(std::move(folder)),
      launch_(launch),
      store_(std::move(store)),
      clock_(clock),
      tell_(std::move(tell)),
      stragglers_(watching()),
      opened_(clock.now()) {}

void RankWatch::add(EventBody body) { events_->add(Event{clock_.now() - opened_, std::move(body)}); }

// The newest flight log of the rank, if it is of this generation.
std::string RankWatch::find(int rank) const {
  const std::string folder = rank_folder(rank) + "/flight";
  const Result<std::vector<std::string>> names = store_->list(folder);
  if (!names.ok() || names->empty()) return "";
  const std::string path = folder_ + "/" + folder + "/" + *std::max_element(names->begin(), names->end());
  const Result<std::vector<std::uint64_t>> words = read_words(path);
  if (!words.ok()) return "";
  const Result<Flight> flight = parse_flight(*words, path);
  const bool ours = flight.ok() && flight->identity.launch == launch_ &&
                    flight->identity.generation == static_cast<std::int64_t>(generation_);
  return ours ? path : "";
}

std::vector<Flight> RankWatch::flights() {
  std::vector<Flight> flights;
  for (std::size_t rank = 0; rank < files_.size(); ++rank) {
    if (files_[rank].empty()) files_[rank] = find(static_cast<int>(rank));
    if (files_[rank].empty()) continue;
    const Result<std::vector<std::uint64_t>> words = read_words(files_[rank]);
    if (!words.ok()) continue;
    if (Result<Flight> flight = parse_flight(*words, files_[rank]); flight.ok()) flights.push_back(std::move(*flight));
  }
  return flights;
}

// What is new in a rank's log was written since the last look.
void RankWatch::compare_clocks(const std::vector<Flight>& flights, Seconds now) {
  for (const Flight& flight : flights) {
    const auto rank = static_cast<std::size_t>(flight.identity.rank);
    const Seconds newest = newest_of(flight);
    if (rank >= clocks_.size() || newest == newest_[rank]) continue;
    newest_[rank] = newest;
    clocks_[rank].saw(newest, looked_at_, now);
  }
  looked_at_ = now;
}

Seconds RankWatch::here(const Flight& flight, Seconds moment) const {
  const auto rank = static_cast<std::size_t>(flight.identity.rank);
  return rank < clocks_.size() ? clocks_[rank].here(moment) : moment;
}

// When the last rank reached the mark.
std::optional<Seconds> RankWatch::all_at(const std::vector<Flight>& flights, FlightMark mark, Seconds begin,
                                         Seconds now) const {
  Seconds last = begin;
  for (const Flight& flight : flights) {
    if (!flight.has(mark)) return std::nullopt;
    last = std::clamp(here(flight, flight.marks[static_cast<std::size_t>(mark)]), last, now);
  }
  return last;
}

void RankWatch::hear(const Straggler& straggler) {
  StragglerFound event;
  event.kind = name_of(straggler.kind);
  event.rank = straggler.rank;
  event.step = straggler.step;
  event.stage = name_of(straggler.stage);
  event.collective = straggler.collective;
  event.took = straggler.took;
  event.usual = straggler.usual;
  event.text = to_string(straggler);
  if (straggler.kind == Straggler::Kind::stuck || straggler.kind == Straggler::Kind::lost_message)
    straggler_ = straggler.rank;
  tell_(event.text);
  add(std::move(event));
}

void RankWatch::starts(std::uint64_t generation, int ranks, Seconds now) {
  if (recovery_) {
    recovery_->generation = static_cast<std::int64_t>(generation);
    recovery_->ended = now - ended_;
  }
  generation_ = generation;
  straggler_ = -1;
  started_ = now;
  files_.assign(static_cast<std::size_t>(ranks), "");
  clocks_.assign(files_.size(), {});
  newest_.assign(files_.size(), Seconds());
  looked_at_ = now;
}

// The last sign of life is the last change in the lost rank's log; the rank was lost no earlier. A rank that the others
// stopped waiting for has an older one than theirs.
void RankWatch::ends(std::uint64_t, const std::string& cause, int rank, Seconds now) {
  const std::vector<Flight> last = flights();
  compare_clocks(last, now);
  if (const std::optional<Straggler> odd = what_ended(last)) hear(*odd);
  recovery_.emplace();
  recovery_->cause = cause;
  ended_ = now;
  Seconds sign = now;
  for (const Flight& flight : last) {
    const std::int64_t its = flight.identity.rank;
    if ((its == rank || its == straggler_) && newest_of(flight) != Seconds())
      sign = std::min(sign, std::clamp(here(flight, newest_of(flight)), started_, now));
  }
  recovery_->detected = now - sign;
  std::int64_t reached = 0;
  for (const Flight& flight : last)
    if (!flight.recent.empty()) reached = std::max(reached, flight.recent.back().step);
  if (reached > 0) reached_ = reached;
}

void RankWatch::look(Seconds now) {
  const std::vector<Flight> found = flights();
  compare_clocks(found, now);
  for (const Straggler& straggler : stragglers_.look(found, now)) hear(straggler);
  if (recovery_ && recovery_->generation != 0) follow_recovery(found, now);
}

void RankWatch::follow_recovery(const std::vector<Flight>& found, Seconds now) {
  if (found.empty() || found.size() < files_.size()) return;
  const auto met = all_at(found, FlightMark::connected, started_, now),
             restored = all_at(found, FlightMark::restored, started_, now),
             stepped = all_at(found, FlightMark::first_step, started_, now);
  if (!met || !restored || !stepped) return;
  recovery_->restarted = *met - started_;
  recovery_->restored = std::max(*restored - *met, Seconds());
  recovery_->stepped = std::max(*stepped - *restored, Seconds());
  for (const Flight& flight : found) {
    if (flight.recent.empty()) continue;
    recovery_->from_step = flight.recent.back().step - flight.steps;
    recovery_->steps_lost = std::max<std::int64_t>(0, reached_ - *recovery_->from_step);
    break;
  }
  const Recovered& r = *recovery_;
  tell_(fmt::format("back after {}{}: detected {}, ended {}, restarted {}, restored {}, first step {}",
                    to_string(r.total()), goes_on_from(r), to_string(r.detected), to_string(r.ended),
                    to_string(r.restarted), to_string(r.restored), to_string(r.stepped)));
  add(*recovery_);
  recovery_.reset();
}

}  // namespace systole
