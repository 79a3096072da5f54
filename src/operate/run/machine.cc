#include "operate/run/machine.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <utility>

#include "execute/backends/reference/reference.h"
#include "execute/calibrate/calibrate.h"
#include "ground/base/counted.h"
#include "ground/process/machine.h"
#include "operate/run/xla_machine.h"
#include "predict/perf/catalog_speed.h"
#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/cpu.h"
#include "execute/backends/cpu/cpu_isa.h"
#endif

namespace systole {

std::string default_entry(const std::string& target_name) {
  for (const auto& [isa, entry] :
       {std::pair("amx", "cpu-amx"), std::pair("bf16", "cpu-avx512_bf16"), std::pair("avx512", "cpu-avx512")}) {
    if (target_name.find(isa) != target_name.npos) return entry;
  }
  return "cpu-avx2";
}

namespace {
#ifdef SYSTOLE_HAS_CPU
std::string named_machine(const CpuIsa& isa) { return fmt::format("this-machine({})", cpu_numerics(isa)); }
#endif

Result<std::unique_ptr<Device>> open_device(const std::string& backend, const ResourcesSpec& resources,
                                            const LinkCost& link, const Catalog& catalog, const MachineUse& use) {
  if (backend == "reference") return make_reference_device();
  if (is_xla(backend)) {
    const std::shared_ptr<XlaHost> host =
        use.xla ? use.xla : TRY(open_xla_host(backend, use.ranks, catalog, use.exact));
    return std::unique_ptr<Device>(TRY(host->device(static_cast<int>(use.rank))));
  }
#ifdef SYSTOLE_HAS_CPU
  if (backend == "cpu") {
    CpuOptions options;
    options.threads = static_cast<int>(resources.threads.value_or(allowed_cores()));
    options.exact = use.exact;
    options.links = {{"host", link.latency, link.bandwidth}};
    return make_cpu_device(options);
  }
#endif
  return error(ErrorKind::unsupported, "this build has no backend '{}'", backend)
      .hinted("--backend reference runs everything, slowly");
}

// Fills in what the bits of the device's results depend on.
void tell_numerics(const std::string& backend, std::int64_t ranks, Machine& machine) {
  machine.numerics = is_xla(backend) ? xla_numerics(backend, *machine.device, ranks) : machine.device->target().name;
#ifdef SYSTOLE_HAS_CPU
  if (backend != "cpu") return;
  machine.isa = to_string(cpu_isa());
  machine.numerics = named_machine(cpu_isa());
#endif
}

// Rejects a calibration of this machine that is dated in the future. Hosts' clocks may be hours apart.
std::optional<Error> refusal_of_date(const CatalogEntry& own, Clock& clock) {
  const std::string tomorrow = to_iso8601(clock.calendar() + std::chrono::hours(24)).substr(0, 10);
  if (own.date() > tomorrow) {
    return error(ErrorKind::invalid, "the calibration is of {}, which is still to come: today is {}", own.date(),
                 clock.timestamp().substr(0, 10))
        .hinted("systole calibrate, when the clock is right");
  }
  return std::nullopt;
}

bool is_calibration(std::string_view name) {
  return name == kThisMachine || name.starts_with(std::string(kThisMachine) + "-");
}

// The newest of the user's calibrations of the processor `identity`, or of any if empty; null: none.
const CatalogEntry* newest_own(const Catalog& catalog, const std::string& identity) {
  const CatalogEntry* newest = nullptr;
  for (const auto& [name, entry] : catalog.entries())
    if (entry.kind == "cpu" && is_calibration(name) && entry.doc.starts_with(identity) &&
        (newest == nullptr || entry.date() >= newest->date()))
      newest = &entry;
  return newest;
}

// The identity "… , 2 threads)" without the number of threads.
std::string_view but_threads(std::string_view identity) { return identity.substr(0, identity.rfind(", ")); }

// Why no calibration of the user's fits this machine and this process. `other`: the newest one.
Error refusal_of(const CatalogEntry& other, const std::string& identity, std::int64_t threads) {
  const std::string again =
      threads == allowed_cores() ? "systole calibrate" : fmt::format("systole calibrate --threads {}", threads);
  if (but_threads(other.doc) == but_threads(identity))
    return error(ErrorKind::invalid, "there is no calibration for {}; that of {} is '{}'", counted(threads, "thread"),
                 other.date(), other.doc)
        .hinted(again);
#ifdef SYSTOLE_HAS_CPU
  if (cpu_is_pinned() && other.doc.starts_with(processor_name() + "; "))
    return error(ErrorKind::invalid, "the calibration of {} is of other instructions: '{}', this is '{}'", other.date(),
                 other.doc, identity)
        .hinted(fmt::format("{} --pin-isa {}", again, to_string(cpu_isa())));
#endif
  return error(ErrorKind::invalid, "the calibration of {} is of another machine: '{}', this is '{}'", other.date(),
               other.doc, identity)
      .hinted(again);
}

Result<RanksLink> link_in(const Catalog& catalog, Clock& clock, std::int64_t ranks, bool over_tcp) {
  const char* transport = over_tcp ? "tcp" : "shm";
  const CatalogEntry* own = newest_own(catalog, processor_name() + "; ");
  if (own != nullptr && !refusal_of_date(*own, clock)) {
    if (const std::optional<LinkCost> measured = TRY(link_among(*own, transport, ranks)))
      return RanksLink{*measured, fmt::format("{}, systole calibrate of {}", transport, own->date())};
  }
  const CatalogEntry* entry = TRY(catalog.find("ranks-of-one-host"));
  return RanksLink{TRY(link_of(*entry)),
                   fmt::format("{}, the catalog's {} of {}, not calibrated", transport, entry->name, entry->date())};
}

// The link over TLS: scaled by the measured ratio of TLS to TCP between two ranks of this machine. Nothing: not
// calibrated.
Result<std::optional<RanksLink>> over_tls(const RanksLink& tcp, const Catalog& catalog, Clock& clock) {
  const CatalogEntry* own = newest_own(catalog, processor_name() + "; ");
  if (own == nullptr || refusal_of_date(*own, clock)) return std::optional<RanksLink>();
  const std::optional<LinkCost> plain = TRY(link_among(*own, "tcp", 2)), tls = TRY(link_among(*own, "tls", 2));
  if (!plain || !tls || plain->latency <= Seconds()) return std::optional<RanksLink>();
  const double later = std::max(1.0, tls->latency / plain->latency),
               slower = std::min(1.0, tls->bandwidth / plain->bandwidth);
  return std::optional(RanksLink{{tcp.cost.latency * later, tcp.cost.bandwidth * slower},
                                 fmt::format("tls beside tcp, systole calibrate of {}", own->date())});
}

}  // namespace

Result<Catalog> read_catalog(bool chips) {
  std::vector<CatalogFile> files = builtin_catalog_files();
  const std::string folder = user_catalog_folder(std::getenv("XDG_CONFIG_HOME"), std::getenv("HOME"));
  std::vector<CatalogFile> own = TRY(read_catalog_folder(folder));
  const bool only_calibrated = std::ranges::all_of(
      own, [](const CatalogFile& file) { return is_calibration(std::filesystem::path(file.name).stem().string()); });
  if (!chips && only_calibrated)
    std::erase_if(files, [](const CatalogFile& file) { return file.name.ends_with("chips.yaml"); });
  std::ranges::move(own, std::back_inserter(files));
  return Catalog::read(files);
}

Result<RanksLink> find_link(Clock& clock, std::int64_t ranks, bool over_tcp) {
  return link_in(TRY(read_catalog(false)), clock, ranks, over_tcp);
}

Status check_threads(std::int64_t threads, const std::string& key) {
  const int cores = allowed_cores();
  if (threads <= cores) return {};
  const std::optional<double> quota = cgroup_cores();
  const std::string by = quota && *quota <= cores ? fmt::format("its control group gives this process {:.4g}", *quota)
                                                  : fmt::format("this process may run on {}", cores);
  return key_error(ErrorKind::invalid, key, "{}, and {} core{}: a team waits for its slowest",
                   counted(threads, "thread"), by, by.ends_with(" 1") ? "" : "s")
      .hinted(fmt::format("{}{}{}, or leave it out; systole doctor tells of quotas", key,
                          key.starts_with('-') ? " " : ": ", cores));
}

Status check_threads(const std::string& backend, const ResourcesSpec& resources, const WorkloadSource& source) {
  if (backend != "cpu" || !resources.threads) return {};
  Status fit = check_threads(*resources.threads, "resources.threads");
  return fit.ok() ? fit : source.placed(std::move(fit).error());
}

Status pin_isa(const std::string& backend, const std::string& isa) {
  if (isa.empty()) return {};
#ifdef SYSTOLE_HAS_CPU
  if (backend == "cpu") {
    Status pinned = pin_cpu_isa(TRY(parse_cpu_isa(isa)));
    if (pinned.ok()) return pinned;
    Error lacking = std::move(pinned).error();
    lacking.message = "--pin-isa: " + lacking.message;
    return std::move(lacking).hinted("go on on a machine that has it, or begin with what all of them have");
  }
#endif
  return error(ErrorKind::invalid, "--pin-isa {}: the {} backend computes the same on every machine", isa, backend)
      .hinted("leave --pin-isa out");
}

std::optional<std::string> numerics_pinned_to(const std::string& isa) {
#ifdef SYSTOLE_HAS_CPU
  const Result<CpuIsa> parsed = parse_cpu_isa(isa);
  if (parsed.ok() && has_cpu_isa(*parsed)) return named_machine(*parsed);
#endif
  static_cast<void>(isa);
  return std::nullopt;
}

Result<Machine> open_machine(const std::string& backend, const ResourcesSpec& resources, Clock& clock,
                             const MachineUse& use) {
  Machine machine;
  const Catalog catalog = TRY(read_catalog(is_xla(backend)));
  const RanksLink link = use.link ? *use.link : TRY(link_in(catalog, clock, use.ranks, use.over_tcp));
  machine.link_source = link.source;
  if (use.tls && use.over_tcp && use.ranks > 1) machine.tls_link = TRY(over_tls(link, catalog, clock));
  machine.device = TRY(open_device(backend, resources, link.cost, catalog, use));
  tell_numerics(backend, use.ranks, machine);
  machine.identity = fmt::format("{}; {}", processor_name(), machine.device->target().name);
  machine.catalog_entry =
      is_xla(backend)
          ? TRY(catalog_entry_of_xla(backend, static_cast<const XlaDevice&>(*machine.device).kind(), catalog))
          : default_entry(machine.device->target().name);
  // Calibration measured the cpu backend's kernels, not XLA's or the reference's.
  if (const CatalogEntry* any = newest_own(catalog, ""); any != nullptr && backend == "cpu") {
    const int threads = machine.device->target().threads;
    const CatalogEntry* own = newest_own(catalog, machine.identity);
    machine.stale = own == nullptr ? refusal_of(*any, machine.identity, threads) : refusal_of_date(*own, clock);
    if (!machine.stale) {
      if (const Result<MachineSpeed> speed = speed_of(*own, threads); speed.ok())
        machine.catalog_entry = own->name;
      else
        machine.stale =
            error(ErrorKind::invalid, "the calibration of {} cannot be used: {}", own->date(), speed.error().message)
                .hinted(fmt::format("systole calibrate --threads {}", threads));
    }
  }
  const CatalogEntry* entry = TRY(catalog.find(machine.catalog_entry));
  machine.catalog_date = entry->date();
  machine.catalog_hash = catalog.hash();
  machine.speed = TRY(speed_of(*entry, machine.device->target().threads));
  // The device chooses algorithms by the link without TLS, so TLS does not change the results' bits.
  machine.speed.link = machine.tls_link ? machine.tls_link->cost : link.cost;
  if (is_xla(backend) && backend != "xla-cpu") {
    // Chips are not linked like ranks of this host, and the catalog does not have their links yet.
    machine.speed.link = LinkCost{Seconds(), machine.speed.memory};
    machine.link_source = "links that are bounded by memory bandwidth";
  }
  if (use.ranks > 1)
    machine.speed.source += "; ranks speak as " + (machine.tls_link ? machine.tls_link->source : machine.link_source);
  machine.speed.cores_move_bytes = !is_xla(backend) || backend == "xla-cpu";
  return machine;
}

}  // namespace systole
