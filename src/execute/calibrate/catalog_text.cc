// A calibration as an entry of the user's catalog.

#include "execute/calibrate/calibrate.h"

namespace systole {

std::string value_text(const CalibratedFact& fact) {
  switch (fact.unit) {
    case CatalogUnit::flop_rate: return fmt::format("{:.4g} GFLOP/s", fact.value * 1e-9);
    case CatalogUnit::bytes_per_second: return fmt::format("{:.4g} GB/s", fact.value * 1e-9);
    case CatalogUnit::per_second: return fmt::format("{:.4g} G/s", fact.value * 1e-9);
    case CatalogUnit::bytes: return fmt::format("{} KiB", static_cast<std::int64_t>(fact.value) / 1024);
    case CatalogUnit::seconds: return fmt::format("{:.4g} us", fact.value * 1e6);
    default: return fmt::format("{:.6g}", fact.value);
  }
}

std::string calibrated_entry(std::int64_t threads) { return fmt::format("{}-{}", kThisMachine, threads); }

std::string catalog_text(const std::vector<CalibratedFact>& facts, std::string_view entry, std::string_view machine,
                         std::string_view date) {
  std::string text = fmt::format(
      "# Written by `systole calibrate`; holds for this machine and this number of threads.\n"
      "systole_catalog: 1\nentries:\n  {}:\n    kind: cpu\n    doc: \"{}\"\n    calibrated: true\n    facts:\n",
      entry, machine);
  for (const CalibratedFact& fact : facts) {
    const std::string spread = fact.spread > 0 ? fmt::format(", spread {:.1f}%", 100 * fact.spread) : "";
    text += fmt::format("      {}: {{ value: {}, source: \"{}{}\", date: {} }}\n", fact.key, value_text(fact), fact.how,
                        spread, date);
  }
  return text;
}

}  // namespace systole
