#include "predict/prove/slice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "ground/base/nearest.h"
#include "ground/catalog/tables.h"
#include "ground/pjrt/gpu_topology.h"

namespace systole::prove {
namespace {

// "4x4" as 4 and 4. Errors: invalid.
Result<std::vector<std::int64_t>> numbers(std::string_view text, const Slice& slice) {
  std::vector<std::int64_t> found;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    std::int64_t number = 0;
    const auto [stop, failed] = std::from_chars(text.data() + at, text.data() + end, number);
    constexpr std::int64_t kMost = 1'000'000;
    if (failed != std::errc() || stop != text.data() + end || number < 1 || number > kMost)
      return error(ErrorKind::invalid, "'{}' is no slice: '{}' is no number of chips", slice.name,
                   text.substr(at, end - at))
          .hinted("as in " + slice.example);
    found.push_back(number);
    at = end + 1;
  }
  return found;
}

std::string example_of(const CatalogEntry& chip) {
  if (chip.kind == "gpu") return chip.name + ":8";
  const auto dims = chip.facts.find("torus.dims");
  return chip.name + (dims != chip.facts.end() && dims->second.value == 3 ? ":2x2x1" : ":2x2");
}

Result<std::int64_t> whole(const CatalogEntry& chip, std::string_view key) {
  return static_cast<std::int64_t>(TRY(chip.number(key)));
}

Result<std::vector<pjrt::NamedValue>> gpu_options(const CatalogEntry& chip, std::int64_t hosts, std::int64_t devices) {
  pjrt::GpuFacts gpu;
  gpu.name = chip.doc;
  gpu.capability_major = static_cast<int>(TRY(whole(chip, "capability.major")));
  gpu.capability_minor = static_cast<int>(TRY(whole(chip, "capability.minor")));
  gpu.accelerated_features = TRY(whole(chip, "capability.accelerated")) != 0;
  gpu.cores = static_cast<int>(TRY(whole(chip, "cores")));
  gpu.fpus_per_core = static_cast<int>(TRY(whole(chip, "fpus.per_core")));
  gpu.clock_ghz = TRY(chip.per_second("clock")) / 1e9;
  gpu.memory = TRY(chip.bytes("memory"));
  gpu.l2_cache = TRY(chip.bytes("l2"));
  gpu.memory_bandwidth = TRY(chip.bytes_per_second("memory.bandwidth"));
  gpu.shared_memory_per_block_optin = TRY(chip.bytes("shared_memory.block"));
  gpu.shared_memory_per_core = TRY(chip.bytes("shared_memory.core"));
  gpu.threads_per_core = static_cast<int>(TRY(whole(chip, "threads.per_core")));
  gpu.registers_per_core = static_cast<int>(TRY(whole(chip, "registers.per_core")));
  return pjrt::gpu_topology_options(
      gpu, {.slices = 1, .hosts = static_cast<int>(hosts), .devices = static_cast<int>(devices)});
}

// GPUs of one host, or of several full hosts.
Status place_gpus(const CatalogEntry& chip, const std::vector<std::int64_t>& sizes, Slice& slice) {
  const std::int64_t of_host = TRY(whole(chip, "host.devices"));
  if (sizes.size() > 2)
    return error(ErrorKind::invalid, "'{}' is no slice: GPUs are counted, or hosts x GPUs of each", slice.name)
        .hinted(fmt::format("{0}:{1}, {0}:2x{1}", chip.name, of_host));
  std::int64_t hosts = sizes.size() == 2 ? sizes[0] : 1, devices = sizes.back();
  if (sizes.size() == 1 && devices > of_host && devices % of_host == 0) {
    hosts = devices / of_host;
    devices = of_host;
  }
  if (devices > of_host)
    return error(ErrorKind::invalid, "'{}': a host has {} of these GPUs", slice.name, of_host)
        .hinted(fmt::format("up to {0}:{1}, or a multiple of {1}", chip.name, of_host));
  slice.chips = slice.devices = hosts * devices;
  slice.options = TRY(gpu_options(chip, hosts, devices));
  return {};
}

// Which axes close. For some chips an axis closes at one length; for others all close, if each is a multiple of it.
Result<SliceNetwork> network_of(const CatalogEntry& chip, const std::vector<std::int64_t>& sizes) {
  SliceNetwork network;
  network.devices_per_chip = TRY(whole(chip, "devices"));
  network.link = TRY(chip.bytes_per_second("link.bandwidth"));
  network.hop = TRY(chip.seconds("link.latency"));
  const bool by_cubes = chip.facts.contains("torus.closes.cubes");
  const std::int64_t closes = TRY(whole(chip, by_cubes ? "torus.closes.cubes" : "torus.closes.axis"));
  if (closes < 1) return error(ErrorKind::invalid, "{}: an axis of {} chips cannot close", chip.name, closes);
  const bool whole_cubes = std::ranges::all_of(sizes, [&](std::int64_t size) { return size % closes == 0; });
  for (const std::int64_t size : sizes) network.axes.push_back({size, by_cubes ? whole_cubes : size == closes});
  return network;
}

Status place_tpus(const CatalogEntry& chip, const std::vector<std::int64_t>& sizes, Slice& slice) {
  const std::int64_t dims = TRY(whole(chip, "torus.dims")), most = TRY(whole(chip, "chips.max"));
  if (static_cast<std::int64_t>(sizes.size()) != dims)
    return error(ErrorKind::invalid, "'{}': the chips of a {} lie along {} axes, and {} {} given", slice.name,
                 chip.name, dims, sizes.size(), sizes.size() == 1 ? "is" : "are")
        .hinted("as in " + example_of(chip));
  slice.chips = 1;
  for (const std::int64_t size : sizes) {
    slice.chips *= size;
    if (slice.chips > most)
      return error(ErrorKind::invalid, "'{}': the largest slice of {} has {} chips", slice.name, chip.name,
                   with_commas(most));
  }
  const std::int64_t per_chip = TRY(whole(chip, "devices"));
  slice.devices = slice.chips * per_chip;
  slice.topology = slice.name;
  slice.cycles_per_second = TRY(chip.per_second("clock"));
  slice.network = TRY(network_of(chip, sizes));
  // Two cores that work as one device; by default the plugin treats them as two.
  if (per_chip == 1 && TRY(whole(chip, "cores")) == 2) slice.options = {{"chip_config_name", std::string("megacore")}};
  slice.memory = Bytes(slice.memory.count() / per_chip);
  slice.bandwidth = slice.bandwidth * (1.0 / static_cast<double>(per_chip));
  slice.peak = slice.peak * (1.0 / static_cast<double>(per_chip));
  return {};
}

// The catalog lists some chips for their price alone; no compiler knows them.
bool provable(const CatalogEntry& chip) {
  return chip.facts.contains("clock") && chip.facts.contains(chip.kind == "gpu" ? "capability.major" : "torus.dims");
}

// Turns a common name into the form of parse_slice.
Result<std::string> as_shape(const std::string& on, const Catalog& catalog) {
  if (names_tpu_slice(catalog, on)) {
    CatalogTables tables = TRY(CatalogTables::read());
    return TRY(find_tpu_slice(catalog, TRY(tables.slices()), on)).by_shape();
  }
  const std::size_t colon = std::min(on.find(':'), on.size());
  const Result<const CatalogEntry*> chip = catalog.find_accelerator(on.substr(0, colon));
  return chip.ok() ? (*chip)->name + on.substr(colon) : on;
}

// "v4", …, "h100": the chips that slices may have.
std::vector<std::string> known_chips(const Catalog& catalog) {
  std::vector<std::string> names;
  for (const char* kind : {"tpu", "gpu"})
    for (const auto& [name, entry] : catalog.entries())
      if (entry.kind == kind && provable(entry)) names.push_back(name);
  return names;
}

}  // namespace

Result<pjrt::CompilerFlags> compiler_flags(const CatalogEntry& chip) {
  pjrt::CompilerFlags flags;
  for (const auto& [name, flag] : chip.compiler) flags.emplace_back(name, TRY(pjrt::option_value(flag.value)));
  return flags;
}

std::vector<std::string> example_slices(const Catalog& catalog) {
  std::vector<std::string> names;
  for (const std::string& chip : known_chips(catalog)) names.push_back(example_of(catalog.entries().at(chip)));
  return names;
}

Result<Slice> parse_slice(std::string_view text, const Catalog& catalog) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string name(text.substr(0, colon));
  const auto found = catalog.entries().find(name);
  if (found == catalog.entries().end() || (found->second.kind != "tpu" && found->second.kind != "gpu")) {
    const std::vector<std::string> known = known_chips(catalog);
    const std::vector<std::string> close = nearest(name, known);
    return error(ErrorKind::not_found, "no chip is called '{}'", name)
        .hinted((close.empty() ? "" : fmt::format("did you mean '{}'? ", close.front())) +
                fmt::format("known slices: {} and the like", fmt::join(example_slices(catalog), ", ")));
  }
  const CatalogEntry& chip = found->second;
  if (!provable(chip))
    return error(ErrorKind::unsupported, "nothing can be proved for {}: no compiler of it is known", name)
        .hinted(fmt::format("chips with one: {}", fmt::join(known_chips(catalog), ", ")));
  if (colon == text.size())
    return error(ErrorKind::invalid, "'{}' says no number of chips", text).hinted("as in " + example_of(chip));
  Slice slice;
  slice.name = text;
  slice.chip = name;
  slice.plugin = chip.kind;
  slice.memory = TRY(chip.bytes("memory"));
  slice.bandwidth = TRY(chip.bytes_per_second("memory.bandwidth"));
  slice.peak = TRY(chip.flop_rate("matmul.bf16"));
  slice.flags = TRY(compiler_flags(chip));
  slice.date = chip.date();
  slice.example = example_of(chip);
  const std::vector<std::int64_t> sizes = TRY(numbers(text.substr(colon + 1), slice));
  TRY(chip.kind == "gpu" ? place_gpus(chip, sizes, slice) : place_tpus(chip, sizes, slice));
  return slice;
}

Result<Slice> find_slice(const std::string& called, const Catalog& catalog) {
  return parse_slice(TRY(as_shape(called, catalog)), catalog);
}

}  // namespace systole::prove
