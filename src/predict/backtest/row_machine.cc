#include "predict/backtest/row_machine.h"

#include "predict/backtest/row_words.h"

namespace systole::backtest {
namespace {

// Name of a chip in tables → name in the catalog. The first match counts.
struct ChipWords {
  std::string_view words, name;
  std::string_view taken = {};
};
constexpr ChipWords kChips[] = {
    {"TPU v3", "v3"},
    {"TPU v4", "v4"},
    {"TPU v5e", "v5e"},
    {"TPU v5p", "v5p"},
    {"TPU v6e", "v6e"},
    {"TPU v7x", "tpu7x"},
    {"PCIe", ""},
    {"A100-SXM-40GB", "a100-40gb"},
    {"A100-SXM-80GB", "a100"},
    {"A100-SXM (memory size not stated)", "a100", "80 GB of memory, for the row does not say"},
    {"H100-SXM-96GB", "h100-hbm2e"},
    {"H100-SXM", "h100"},
    {"H200", "h200"},
    {"GB200", "gb200"},
    {"GB300", "gb300"},
    {"B200", "b200"},
    {"B300", "b300"},
    {"V100-SXM", "v100"},
};

// Words of a table for a network → its bandwidth per machine, one way, in Gbit/s.
struct NetworkWords {
  std::string_view words;
  double gbits;
};
constexpr NetworkWords kNetworks[] = {
    // Jean Zay: four links of 100 Gbit/s per A100 node (bigscience-workshop/bigscience, tr11 README); V100 the same.
    {"Omni-Path", 400},
    {"GCP A3", 800},  // four of 200 Gbit/s: docs.cloud.google.com, accelerator-optimized machines, a3-highgpu-8g
};

// A machine's links, one way, in Gbit/s: "8x400 Gb/s IB", "1600 Gbps node-node", "800 Gb/s per node",
// "400 Gb/s RDMA per GPU".
std::optional<double> gbits_of(std::string_view text, std::int64_t devices) {
  for (const std::string_view unit : {" Gb/s", " Gbps"}) {
    const std::optional<double> rate = number_before(text, unit);
    if (!rate) continue;
    if (says(text, "per GPU")) return *rate * static_cast<double>(devices);
    if (says(text, "Omni-Path")) break;
    if (says(text, "8x")) return *rate * 8;
    return rate;
  }
  for (const NetworkWords& network : kNetworks)
    if (says(text, network.words)) return network.gbits;
  return std::nullopt;
}

// "topology 4x8x8".
std::vector<std::int64_t> torus_of(std::string_view notes) {
  std::vector<std::int64_t> dims;
  const std::size_t at = notes.find("topology ");
  if (at == notes.npos) return dims;
  notes.remove_prefix(at + 9);
  notes = notes.substr(0, notes.find_first_not_of("0123456789x"));
  for (std::string_view rest = notes; !rest.empty();) {
    dims.push_back(static_cast<std::int64_t>(number_after(rest, "").value_or(0)));
    const std::size_t next = rest.find('x');
    rest.remove_prefix(next == rest.npos ? rest.size() : next + 1);
  }
  return dims;
}

}  // namespace

Result<RowMachine> row_machine(const PublishedRow& row, const Catalog& catalog, std::vector<std::string>& taken) {
  const ChipWords* words = nullptr;
  for (const ChipWords& candidate : kChips)
    if (words == nullptr && says(row.accelerator, candidate.words)) words = &candidate;
  RowMachine machine;
  const Result<const CatalogEntry*> chip =
      catalog.find_accelerator(words == nullptr || words->name.empty() ? row.accelerator : words->name);
  if (!chip.ok()) return error(ErrorKind::unsupported, "a chip that the catalog does not have: {}", row.accelerator);
  machine.chip = *chip;
  if (words != nullptr && !words->taken.empty()) taken.emplace_back(words->taken);
  if (machine.chip->facts.contains("devices"))
    machine.devices_of_chip = static_cast<std::int64_t>(TRY(machine.chip->number("devices")));
  ClusterOptions& cluster = machine.cluster;
  cluster.devices = row.chips.value_or(0) * machine.devices_of_chip;
  cluster.slices = row.slices.value_or(1);
  cluster.torus = torus_of(row.notes);
  if (machine.chip->kind != "gpu") return machine;
  cluster.host = row.chips_per_node;
  const std::int64_t host = row.chips_per_node.value_or(8);
  if (const std::optional<double> gbits = gbits_of(row.network, host))
    cluster.network = BytesPerSecond(*gbits * 1e9 / 8 / static_cast<double>(host));
  return machine;
}

}  // namespace systole::backtest
