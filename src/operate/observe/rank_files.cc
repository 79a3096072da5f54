#include "operate/observe/rank_files.h"

#include <algorithm>
#include <cstring>

#include "ground/base/number_from.h"
#include "operate/observe/run_files.h"

namespace systole {
namespace {

// The numbers of entries named "<number><ending>", sorted.
Result<std::vector<std::int64_t>> numbers_in(Store& store, const std::string& dir, std::string_view ending) {
  std::vector<std::int64_t> numbers;
  const Result<std::vector<std::string>> names = store.list(dir);
  if (!names.ok() && names.error().kind == ErrorKind::not_found) return numbers;
  if (!names.ok()) return names.error();
  for (std::string_view name : *names) {
    if (!name.ends_with(ending)) continue;
    const std::int64_t number = number_from(name.substr(0, name.size() - ending.size())).value_or(-1);
    if (number >= 0) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string flight_folder(std::int64_t rank) { return rank_folder(rank) + "/flight"; }
std::string flight_name(std::int64_t number) { return fmt::format("{:03}.log", number); }

}  // namespace

std::string rank_folder(std::int64_t rank) { return fmt::format("{}/{}", kRanksFolder, rank); }

Result<std::string> next_flight_file(Store& run, std::int64_t rank) {
  const std::string folder = flight_folder(rank);
  TRY(make_dirs_synced(run, folder));
  const std::vector<std::int64_t> numbers = TRY(numbers_in(run, folder, ".log"));
  return folder + "/" + flight_name(numbers.empty() ? 0 : numbers.back() + 1);
}

Result<std::vector<Flight>> read_flights(Store& run, const std::string& dir, std::int64_t rank) {
  std::vector<Flight> flights;
  const std::string folder = inside(dir, flight_folder(rank));
  for (const std::int64_t number : TRY(numbers_in(run, folder, ".log"))) {
    const std::string path = folder + "/" + flight_name(number);
    const std::vector<std::byte> bytes = TRY(read_all(run, path));
    std::vector<std::uint64_t> words(bytes.size() / sizeof(std::uint64_t));
    if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint64_t));
    if (Result<Flight> flight = parse_flight(words, path); flight.ok()) flights.push_back(std::move(*flight));
  }
  return flights;
}

Result<std::vector<std::int64_t>> list_ranks(Store& run, const std::string& dir) {
  return numbers_in(run, inside(dir, kRanksFolder), "/");
}

Result<std::vector<Event>> read_agent_events(Store& run, const std::string& dir) {
  std::vector<Event> events;
  for (const std::string& file : TRY(list_event_files(run, inside(dir, kAgentFolder)))) {
    const std::vector<Event> more = TRY(parse_events(TRY(read_text(run, file)), file));
    events.insert(events.end(), more.begin(), more.end());
  }
  return events;
}

}  // namespace systole
