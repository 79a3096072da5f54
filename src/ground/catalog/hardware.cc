#include "ground/catalog/hardware.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "ground/base/counted.h"
#include "ground/base/nearest.h"
#include "ground/base/units.h"

namespace systole {
namespace {

constexpr std::int64_t kMostOfAnything = 1'000'000;

std::vector<std::string> split_at_colons(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find(':', from), text.size());
    parts.emplace_back(text.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// "8 x a3-highgpu-8g" becomes "a3-highgpu-8g:8".
std::string number_behind(std::string_view words) {
  const std::size_t times = words.find(" x ");
  if (times == words.npos || !all_digits(words.substr(0, times))) return std::string(words);
  return fmt::format("{}:{}", words.substr(times + 3), words.substr(0, times));
}

class Reader {
 public:
  Reader(const Catalog& catalog, std::span<const MachineType> machines, std::span<const TpuSlice> slices,
         std::string_view words, std::string_view key)
      : catalog_(catalog), machines_(machines), slices_(slices), words_(words), key_(key) {}

  Result<RequestedHardware> read();

 private:
  Result<std::int64_t> number(std::string_view text) const;
  Result<RequestedHardware> of_machines(const MachineType& type, std::int64_t machines) const;
  Result<RequestedHardware> of_slices(const TpuSlice& slice, std::int64_t slices) const;
  Result<RequestedHardware> of_tpus(const CatalogEntry& chip, std::span<const std::string> rest) const;
  Result<RequestedHardware> of_chips(const CatalogEntry& chip, std::int64_t count) const;
  Result<RequestedHardware> of_chips_in(const CatalogEntry& chip, std::int64_t count, std::string_view machine) const;
  Error unknown(const std::string& name) const;
  Error without_accelerator(const MachineType& type) const;
  std::string with_colon(std::string_view name) const;
  template <typename... Args>
  Error invalid(fmt::format_string<Args...> format, Args&&... args) const {
    return error(ErrorKind::invalid, "{} {}: {}", key_, words_, fmt::format(format, std::forward<Args>(args)...));
  }

  const Catalog& catalog_;
  std::span<const MachineType> machines_;
  std::span<const TpuSlice> slices_;
  std::string_view words_, key_;
};

Result<std::int64_t> Reader::number(std::string_view text) const {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!all_digits(text) || failed != std::errc() || number < 1 || number > kMostOfAnything)
    return invalid("'{}' is no number from 1 to {}", text, with_commas(kMostOfAnything))
        .hinted("h100:64, a3-highgpu-8g:8, v5p:4x4x4, v5p:4x4x4:2");
  return number;
}

Result<RequestedHardware> Reader::of_machines(const MachineType& type, std::int64_t machines) const {
  RequestedHardware asked;
  asked.chip = TRY(catalog_.find(type.accelerator));
  asked.chips = machines * static_cast<std::int64_t>(type.accelerators);
  asked.types = {&type};
  asked.machines = machines;
  return asked;
}

Result<RequestedHardware> Reader::of_slices(const TpuSlice& slice, std::int64_t slices) const {
  RequestedHardware asked;
  asked.chip = TRY(catalog_.find(slice.accelerator));
  asked.chips = slice.chips * slices;
  asked.machines = slice.hosts * slices;
  asked.slice = slice;
  asked.slices = slices;
  return asked;
}

Result<RequestedHardware> Reader::of_tpus(const CatalogEntry& chip, std::span<const std::string> rest) const {
  const std::int64_t slices = rest.size() > 1 ? TRY(number(rest[1])) : 1;
  if (!all_digits(rest[0])) return of_slices(TRY(find_tpu_slice(catalog_, slices_, chip.name + ":" + rest[0])), slices);
  const std::int64_t chips = TRY(number(rest[0]));
  std::vector<std::int64_t> known;
  for (const TpuSlice& slice : slices_) {
    if (slice.accelerator != chip.name || !slice.usual) continue;
    if (slice.chips == chips) return of_slices(slice, slices);
    known.push_back(slice.chips);
  }
  std::ranges::sort(known, {}, [&](std::int64_t k) { return std::pair(std::abs(k - chips), k); });
  known.erase(std::unique(known.begin(), known.end()), known.end());
  if (known.size() > 2) known.resize(2);
  return invalid("{} has no slice of {}", chip.name, counted(chips, "chip"))
      .hinted(fmt::format("the nearest have {} chips: {}:{}", fmt::join(known, " and "), chip.name,
                          known.empty() ? 0 : known.front()));
}

Result<RequestedHardware> Reader::of_chips_in(const CatalogEntry& chip, std::int64_t count,
                                              std::string_view machine) const {
  const auto attached = std::ranges::find(machines_, machine, &MachineType::name);
  const MachineType* type = attached != machines_.end() && attached->accelerator == chip.name
                                ? &*attached
                                : TRY(machine_for(machines_, machine, chip.name));
  const auto each = static_cast<std::int64_t>(type->accelerators);
  if (each < 1 || count % each != 0)
    return invalid("{} has {}, which {} is no multiple of", type->name, type->accelerators_text(), count)
        .hinted(fmt::format("{}:{}", chip.name, nearest_multiples(count, std::max<std::int64_t>(1, each))));
  return of_machines(*type, count / each);
}

// Prefers machines with the chip's usual number of chips if it divides the count; otherwise the largest number that
// does.
Result<RequestedHardware> Reader::of_chips(const CatalogEntry& chip, std::int64_t count) const {
  std::vector<const MachineType*> types = machines_with(machines_, chip.name);
  std::erase_if(types, [](const MachineType* t) { return t->accelerators < 1; });
  RequestedHardware asked;
  asked.chip = &chip;
  asked.chips = count;
  if (types.empty()) return asked;
  const auto fact = chip.facts.find("host.devices");
  const auto usual = fact == chip.facts.end() ? 0 : static_cast<std::int64_t>(fact->second.value);
  std::int64_t each = 0, least = kMostOfAnything;
  for (const MachineType* type : types) {
    const auto has = static_cast<std::int64_t>(type->accelerators);
    least = std::min(least, has);
    if (count % has == 0 && (has == usual || (each != usual && has > each))) each = has;
  }
  if (each == 0)
    return invalid("{} comes {} to a machine at the least, which {} is no multiple of", chip.name, least, count)
        .hinted(fmt::format("{}:{}", chip.name, nearest_multiples(count, least)));
  std::erase_if(types, [&](const MachineType* t) { return static_cast<std::int64_t>(t->accelerators) != each; });
  asked.types = std::move(types);
  asked.machines = count / each;
  return asked;
}

Error Reader::unknown(const std::string& name) const {
  const Error none =
      error(ErrorKind::not_found, "{} {}: no accelerator, machine or slice is called '{}'", key_, words_, name)
          .coded(ErrorCode::no_such_name);
  if (const std::string plain = with_colon(name); !plain.empty()) return Error(none).hinted(plain);
  std::vector<std::string> names;
  for (const auto& [key, one] : catalog_.entries()) {
    if (one.kind != "gpu" && one.kind != "tpu") continue;
    std::ranges::move(names_of(one), std::back_inserter(names));
  }
  for (const MachineType& type : machines_)
    if (!type.accelerator.empty()) names.push_back(type.name);
  for (const TpuSlice& slice : slices_) names.push_back(slice.name);
  const std::optional<std::string> meant = meant_hint(name, names);
  return Error(none).hinted(meant ? *meant : nearest_accelerator_hint(name, catalog_));
}

Error Reader::without_accelerator(const MachineType& type) const {
  for (const MachineType& attachment : machines_)
    if (attachment.accelerators >= 1 && attaches(machines_, attachment, type.name))
      return invalid("{} has no accelerators of its own", type.name)
          .hinted(
              fmt::format("attached to it: {}:{:g}@{}", attachment.accelerator, attachment.accelerators, type.name));
  return invalid("{} has no accelerators, and none are attached to it", type.name)
      .hinted("systole catalog machines lists those that have");
}

// Converts other notations for a number of accelerators to ours: "8xH100", "h100x8", "h100-8" become "h100:8"; else "".
std::string Reader::with_colon(std::string_view name) const {
  const auto as_ours = [&](std::string_view chip, std::string_view count) {
    const bool both = all_digits(count) && catalog_.find_accelerator(chip).ok();
    return both ? fmt::format("{}:{}", chip, count) : std::string();
  };
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (name[at] != 'x' && name[at] != 'X' && name[at] != '-' && name[at] != '=') continue;
    const std::string_view before = name.substr(0, at), behind = name.substr(at + 1);
    for (const std::string& ours : {as_ours(before, behind), as_ours(behind, before)})
      if (!ours.empty()) return ours;
  }
  return "";
}

Result<RequestedHardware> Reader::read() {
  const std::string text = number_behind(words_);
  const std::size_t at = text.find('@');
  const std::vector<std::string> words = split_at_colons(std::string_view(text).substr(0, at));
  const std::string machine = at == text.npos ? "" : text.substr(at + 1);
  if (words[0].empty() || words.size() > 3)
    return error(ErrorKind::invalid, "{} '{}' is no accelerator, machine or slice with a number", key_, words_)
        .hinted("h100:64, a3-highgpu-8g:8, v5p:4x4x4, v5p-128");
  const Result<const CatalogEntry*> chip = catalog_.find_accelerator(words[0]);
  if (at != text.npos && (!chip.ok() || (*chip)->kind == "tpu"))
    return invalid("'@{}' says in which machine GPUs are, and {} {}", machine, words[0],
                   chip.ok() ? "is a TPU, which comes in slices" : "is none")
        .hinted(text.substr(0, at));
  if (names_tpu_slice(catalog_, words[0]) && words.size() <= 2) {
    const TpuSlice slice = TRY(find_tpu_slice(catalog_, slices_, words[0]));
    return of_slices(slice, words.size() > 1 ? TRY(number(words[1])) : 1);
  }
  const auto type = std::ranges::find(machines_, words[0], &MachineType::name);
  if (type != machines_.end() && !type->accelerator.empty() && type->kind != MachineKind::tpu && words.size() <= 2)
    return of_machines(*type, words.size() > 1 ? TRY(number(words[1])) : 1);
  if (type != machines_.end() && type->accelerator.empty()) return without_accelerator(*type);
  if (!chip.ok()) return chip.error().kind == ErrorKind::invalid ? chip.error() : unknown(words[0]);
  if (words.size() < 2)
    return invalid("how many of them?")
        .hinted((*chip)->kind == "tpu" ? fmt::format("{}:16, or a shape", words[0]) : fmt::format("{}:8", words[0]));
  if ((*chip)->kind == "tpu") return of_tpus(**chip, std::span(words).subspan(1));
  if (words.size() > 2)
    return invalid("'{}' after the number", words[2]).hinted(fmt::format("{}:{}", words[0], words[1]));
  const std::int64_t count = TRY(number(words[1]));
  return machine.empty() ? of_chips(**chip, count) : of_chips_in(**chip, count, machine);
}

}  // namespace

std::string nearest_multiples(std::int64_t count, std::int64_t each) {
  const std::int64_t below = count / each * each;
  return below > 0 ? fmt::format("{} or {}", below, below + each) : std::to_string(each);
}

Result<RequestedHardware> parse_hardware(const Catalog& catalog, std::span<const MachineType> machines,
                                         std::span<const TpuSlice> slices, std::string_view words,
                                         std::string_view key) {
  return Reader(catalog, machines, slices, words, key).read();
}

}  // namespace systole
