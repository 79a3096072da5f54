#include "operate/run/machine_facts.h"

#include "operate/run/machine.h"
#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/cpu.h"
#endif

namespace systole {
namespace {

std::optional<BytesPerSecond> rate_of(const CatalogEntry& entry, const char* key) {
  const Result<BytesPerSecond> rate = entry.bytes_per_second(key);
  return rate.ok() ? std::optional(*rate) : std::nullopt;
}

}  // namespace

std::vector<LibraryFacts> library_facts() {
#ifdef SYSTOLE_HAS_CPU
  const Status loaded = load_cpu_library();
  return {{cpu_library(), loaded.ok() ? std::optional<Error>() : loaded.error()}};
#else
  return {};
#endif
}

CalibrationFacts calibration_facts(Clock& clock) {
  CalibrationFacts facts;
  const Result<Machine> machine = open_machine("cpu", {}, clock);
  if (!machine.ok()) {
    facts.stale = machine.error();
    return facts;
  }
  facts.entry = machine->catalog_entry;
  facts.date = machine->catalog_date;
  facts.calibrated = machine->speed.calibrated;
  facts.stale = machine->stale;
  const Result<Catalog> catalog = read_catalog();
  const Result<const CatalogEntry*> entry =
      catalog.ok() ? catalog->find(facts.entry) : Result<const CatalogEntry*>(catalog.error());
  if (facts.calibrated && entry.ok()) {
    facts.disk_write = rate_of(**entry, "disk.write");
    facts.disk_read = rate_of(**entry, "disk.read");
  }
  return facts;
}

}  // namespace systole
