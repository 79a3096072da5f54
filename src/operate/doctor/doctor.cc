#include "operate/doctor/doctor.h"
#include "ground/base/counted.h"

#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <cstdio>

namespace systole {
namespace {

Finding well(std::string name, std::string text) { return {std::move(name), Verdict::ok, std::move(text), {}}; }
Finding doubtful(std::string name, std::string text, std::string hint) {
  return {std::move(name), Verdict::warn, std::move(text), std::move(hint)};
}
Finding wrong(std::string name, std::string text, std::string hint) {
  return {std::move(name), Verdict::fail, std::move(text), std::move(hint)};
}

Finding cores(const MachineFacts& m) {
  std::string text = fmt::format("{} of {}; {}", m.cores, m.machine_cores, m.processor);
  if (m.quota) text += fmt::format("; control group: {:.4g}", *m.quota);
  // The fraction of a core is throttled in the middle of a step.
  if (m.quota && *m.quota < m.cores && std::abs(*m.quota - std::round(*m.quota)) > 0.05) {
    return doubtful("cores", text,
                    fmt::format("a quota of whole cores ({} or {}): a team that is throttled waits for its slowest",
                                std::max(1.0, std::floor(*m.quota)), std::ceil(*m.quota)));
  }
  return well("cores", text);
}

Finding load(const MachineFacts& m) {
  const std::string text = fmt::format("{:.2f} runnable on {} cores of the machine", m.load, m.machine_cores);
  if (m.load > 0.25 * m.machine_cores + 0.5)
    return doubtful("load", text,
                    "others keep this machine busy (top shows who): calibrate and time it when they do not");
  return well("load", text);
}

Finding instructions(const MachineFacts& m) {
  if (!m.has("avx2") || !m.has("fma")) {
    return wrong("instructions", "no AVX2 with FMA, which the cpu backend needs",
                 "a machine of the last ten years; --backend reference runs on any, slowly");
  }
  std::vector<std::string> sets{"avx2"};
  const bool avx512 = m.has("avx512f") && m.has("avx512bw") && m.has("avx512vl") && m.has("avx512dq");
  if (avx512) sets.emplace_back("avx512");
  if (avx512 && m.has("avx512_vnni")) sets.emplace_back("avx512-vnni");
  if (avx512 && m.has("avx512_bf16")) sets.emplace_back("avx512-bf16");
  if (m.has("amx_bf16")) sets.emplace_back(m.tiles_allowed ? "amx" : "amx (not allowed)");
  const std::string text = fmt::format("{}", fmt::join(sets, ", "));
  if (m.has("amx_bf16") && !m.tiles_allowed)
    return doubtful("instructions", text,
                    "a kernel of 5.16 or newer lets programs use AMX: several times faster in bf16");
  if (!avx512) return doubtful("instructions", text, "train.precision: f32; oneDNN multiplies bf16 on AVX-512 only");
  return well("instructions", text);
}

Finding governor(const MachineFacts& m) {
  if (m.governor == "powersave") {
    return doubtful("frequency", "governor powersave",
                    "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor");
  }
  return well("frequency", m.governor ? "governor " + *m.governor : "kept by the machine");
}

Finding memory(const MachineFacts& m) {
  const Bytes limit = std::min(m.memory_group.value_or(m.memory), m.memory);
  std::string text = fmt::format("{} available of {}", to_string(std::min(m.available, limit)), to_string(m.memory));
  if (m.memory_group && *m.memory_group < m.memory)
    text += fmt::format("; control group: {}", to_string(*m.memory_group));
  if (m.available < kMiB * 256)
    return wrong("memory", text, "end what holds it (ps --sort -rss), or take a machine with more");
  if (m.address_space)
    return doubtful("memory", text + fmt::format("; ulimit -v: {}", to_string(Bytes(*m.address_space))),
                    "ulimit -v unlimited: an address space is not memory");
  if (m.strict_overcommit)
    return doubtful("memory", text + "; vm.overcommit_memory = 2",
                    "sudo sysctl vm.overcommit_memory=0: what is only reserved counts as used");
  if (m.available < kGiB) return doubtful("memory", text, "end what holds it (ps --sort -rss): models want gigabytes");
  return well("memory", text);
}

Finding huge_pages(const MachineFacts& m) {
  if (!m.huge_pages) return doubtful("huge pages", "the kernel has none", "a kernel with transparent huge pages");
  if (*m.huge_pages == "never") {
    return doubtful(
        "huge pages", "never",
        "echo always | sudo tee /sys/kernel/mm/transparent_hugepage/enabled: an arena of gigabytes in 4 KiB "
        "pages misses the translation cache");
  }
  return well("huge pages",
              *m.huge_pages == "madvise" ? "madvise: who asks gets them; the arena does not ask" : *m.huge_pages);
}

Finding disk(const Examined& e) {
  const MachineFacts& m = e.machine;
  if (m.sync_error) {
    return wrong("disk", m.sync_error->message,
                 m.sync_error->kind == ErrorKind::no_space ? "make room here"
                                                           : "a folder that may be written: runs are kept here");
  }
  std::string text = m.disk ? fmt::format("{} free of {}", to_string(m.disk->free), to_string(m.disk->total)) : "";
  if (m.sync_time) text += fmt::format("; fsync {}", to_string(*m.sync_time));
  if (e.calibration.disk_write && e.calibration.disk_read) {
    text +=
        fmt::format("; writes {}, reads {}", to_string(*e.calibration.disk_write), to_string(*e.calibration.disk_read));
  }
  if (m.disk && m.disk->free < kGiB)
    return wrong("disk", text, "make room: checkpoints of a small model take a gigabyte");
  if (m.disk && m.disk->free < kGiB * 10) return doubtful("disk", text, "make room, or lower checkpoint.keep");
  if (m.sync_time && *m.sync_time > Seconds(0.1))
    return doubtful("disk", text, "checkpoint.folder on a faster disk, or a longer checkpoint.every");
  return well("disk", text);
}

Finding shared_memory(const MachineFacts& m) {
  if (!m.shared_memory) {
    return doubtful("shared memory", "/dev/shm is not there",
                    "mount it: ranks on one machine exchange data through it");
  }
  const std::string text =
      fmt::format("{} free of {}", to_string(m.shared_memory->free), to_string(m.shared_memory->total));
  if (m.shared_memory->free < kMiB * 256)
    return doubtful("shared memory", text, "docker run --shm-size=1g: ranks on one machine exchange data through it");
  return well("shared memory", text);
}

Finding clock(const MachineFacts& m) {
  const double ppm = 1e6 * m.clock.drift;
  std::string text = fmt::format("drift {:+.0f} ppm", ppm);
  if (m.clock.synchronised) text += *m.clock.synchronised ? "; synchronised" : "; not synchronised";
  if (std::abs(ppm) > 1000)
    return doubtful("clock", text, "timedatectl status: somebody is setting the clock; the dates of events will jump");
  if (m.clock.synchronised == false)
    return doubtful("clock", text, "sudo timedatectl set-ntp true: events of several machines are put in order by it");
  return well("clock", text);
}

Finding limits(const MachineFacts& m) {
  const auto told = [](std::optional<std::int64_t> value, bool bytes) {
    return !value ? std::string("unlimited") : bytes ? to_string(Bytes(*value)) : with_commas(*value);
  };
  const std::string text = fmt::format("open files {}, locked memory {}, core {}", told(m.open_files, false),
                                       told(m.locked_memory, true), told(m.core_size, true));
  if (m.open_files && *m.open_files < 1024) return doubtful("limits", text, "ulimit -n 1024");
  return well("limits", text);
}

Finding library(const LibraryFacts& l) {
  if (!l.error) return well("library", l.name);
  return wrong("library", l.error->message, l.error->hint.empty() ? "install it" : l.error->hint);
}

// Days between two dates YYYY-MM-DD; nothing if one is not a date.
std::optional<int> days_between(const std::string& from, const std::string& to) {
  using namespace std::chrono;
  const auto day = [](const std::string& text) -> std::optional<sys_days> {
    int y = 0;
    unsigned m = 0, d = 0;
    if (std::sscanf(text.c_str(), "%4d-%2u-%2u", &y, &m, &d) != 3) return std::nullopt;
    const year_month_day date{year(y), month(m), std::chrono::day(d)};
    if (!date.ok()) return std::nullopt;
    return sys_days(date);
  };
  const auto a = day(from), b = day(to);
  if (!a || !b) return std::nullopt;
  return static_cast<int>((*b - *a).count());
}

constexpr int kOld = 180;  // days; kernels, microcode and libraries change

Finding calibration(const Examined& e) {
  const CalibrationFacts& c = e.calibration;
  if (c.stale)
    return doubtful("calibration", c.stale->message, c.stale->hint.empty() ? "systole calibrate" : c.stale->hint);
  if (!c.calibrated) {
    return doubtful("calibration", fmt::format("none: plans use '{}', guessed from other machines", c.entry),
                    "systole calibrate --quick");
  }
  const std::optional<int> age = days_between(c.date, e.today);
  if (!age) return doubtful("calibration", fmt::format("of '{}', which is no date", c.date), "systole calibrate");
  const std::string text = fmt::format("of {}, {} old", c.date, counted(*age, "day"));
  if (*age > kOld) return doubtful("calibration", text, "systole calibrate: systems change");
  return well("calibration", text);
}

Finding threads(const Examined& e) {
  if (!e.threads) return well("threads", fmt::format("{}, as many as cores", e.machine.cores));
  const std::string text = fmt::format("{} asked for, {} to be had", *e.threads, counted(e.machine.cores, "core"));
  if (*e.threads > e.machine.cores)
    return wrong("threads", text, fmt::format("resources.threads: {}, or leave it out", e.machine.cores));
  return well("threads", text);
}

}  // namespace

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok: return "ok";
    case Verdict::warn: return "warn";
    case Verdict::fail: return "fail";
  }
  return "?";
}

std::vector<Finding> examine(const Examined& e) {
  const MachineFacts& m = e.machine;
  std::vector<Finding> findings{cores(m),      threads(e), load(m),          instructions(m), governor(m), memory(m),
                                huge_pages(m), disk(e),    shared_memory(m), clock(m),        limits(m)};
  for (const LibraryFacts& l : e.libraries) findings.push_back(library(l));
  findings.push_back(calibration(e));
  return findings;
}

}  // namespace systole
