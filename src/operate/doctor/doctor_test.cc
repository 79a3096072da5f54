#include "operate/doctor/doctor.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace systole {
namespace {

class FakeSystem : public System {
 public:
  std::optional<SpaceFacts> disk = SpaceFacts{kGiB * 100, kGiB * 200}, shared = SpaceFacts{kGiB, kGiB};
  std::optional<std::int64_t> open_files = 1024;
  ClockFacts ticking{1e-6, true};
  Result<Seconds> sync = Seconds(0.002);
  bool tiles = true;

  std::optional<SpaceFacts> space(const std::string& folder) override {
    return folder.find("shm") != folder.npos ? shared : disk;
  }
  std::optional<std::int64_t> limit(Limit which) override {
    return which == Limit::open_files ? open_files : std::nullopt;
  }
  ClockFacts clock() override { return ticking; }
  bool tiles_allowed() override { return tiles; }
  Result<Seconds> sync_time(const std::string&) override { return sync; }
};

// A faultless machine: folders that look like the kernel's, and a date.
class Doctor : public testing::Test {
 protected:
  Doctor() {
    std::string name = (std::filesystem::temp_directory_path() / "systole-doctor-XXXXXX").string();
    CHECK(mkdtemp(name.data()) != nullptr, "no temporary folder");
    root_ = name;
    roots_ = {{root_ + "/proc", root_ + "/cgroup"}, root_ + "/sys", "shm", "runs"};
    cpu("fma avx2 avx512f avx512bw avx512vl avx512dq avx512_vnni avx512_bf16");
    write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n");
    write("proc/loadavg", "0.10 0.20 0.30 1/100 1234\n");
    write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    examined_.libraries = {{"oneDNN 2.6.3", std::nullopt}};
    examined_.calibration = {"this-machine", "2026-11-20", true, std::nullopt, std::nullopt, std::nullopt};
    examined_.today = "2026-11-21";
  }
  ~Doctor() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void cpu(const std::string& flags) {
    std::string text;
    for (int i = 0; i < 64; ++i)
      text += fmt::format("processor : {}\nmodel name : A Processor\nflags\t: {}\n\n", i, flags);
    write("proc/cpuinfo", text);
  }
  std::vector<Finding> findings() {
    examined_.machine = read_facts(roots_, system_);
    return examine(examined_);
  }
  Finding finding(const std::string& name) {
    for (const Finding& each : findings()) {
      if (each.name == name) return each;
    }
    ADD_FAILURE() << "no finding " << name;
    return {};
  }
  void expect(const std::string& name, Verdict verdict, const std::string& text, const std::string& hint) {
    const Finding found = finding(name);
    EXPECT_STREQ(name_of(found.verdict), name_of(verdict)) << found.text;
    EXPECT_NE(found.text.find(text), std::string::npos) << found.text;
    EXPECT_NE(found.hint.find(hint), std::string::npos) << found.hint;
  }

  std::string root_;
  MachineRoots roots_;
  FakeSystem system_;
  Examined examined_;
};

TEST_F(Doctor, a_good_machine_is_well_and_whatever_is_not_says_what_to_do) {
  ASSERT_FALSE(findings().empty());
  for (const Finding& each : findings()) {
    EXPECT_STREQ(name_of(each.verdict), "ok") << each.name << ": " << each.text;
    EXPECT_FALSE(each.text.empty()) << each.name;
  }
  system_.sync = error(ErrorKind::io, "cannot write in 'runs': Permission denied");
  system_.open_files = 64;
  write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 8000 kB\n");
  int unwell = 0;
  for (const Finding& each : findings()) {
    unwell += each.verdict == Verdict::ok ? 0 : 1;
    EXPECT_EQ(each.verdict == Verdict::ok, each.hint.empty()) << each.name;
  }
  EXPECT_EQ(unwell, 3) << "the disk, open files and memory";
}

TEST_F(Doctor, cores_under_a_quota) {
  write("proc/self/cgroup", "0::/\n");
  write("cgroup/cpu.max", "100000 100000\n");
  expect("cores", Verdict::ok, "1 of 64; A Processor; control group: 1", "");
  write("cgroup/cpu.max", "50000 100000\n");
  expect("cores", Verdict::warn, "control group: 0.5", "whole cores (1 or 1)");
}

TEST_F(Doctor, threads_beyond_the_cores_are_wrong) {
  write("proc/self/cgroup", "0::/\n");
  write("cgroup/cpu.max", "100000 100000\n");
  examined_.threads = 8;
  expect("threads", Verdict::fail, "8 asked for, 1 core to be had", "resources.threads: 1");
  examined_.threads = 1;
  expect("threads", Verdict::ok, "1 asked for", "");
}

TEST_F(Doctor, instruction_sets) {
  cpu("sse4_2 avx");
  expect("instructions", Verdict::fail, "no AVX2", "--backend reference");
  cpu("fma avx2");
  expect("instructions", Verdict::warn, "avx2", "f32");
  cpu("fma avx2 avx512f avx512bw avx512vl avx512dq avx512_vnni avx512_bf16 amx_tile amx_bf16 amx_int8");
  expect("instructions", Verdict::ok, "avx512-bf16, amx", "");
  system_.tiles = false;
  expect("instructions", Verdict::warn, "amx (not allowed)", "kernel of 5.16");
}

TEST_F(Doctor, memory_and_its_group) {
  write("proc/self/cgroup", "0::/\n");
  write("cgroup/memory.max", "4294967296\n");
  expect("memory", Verdict::ok, "4.00 GiB available of 15.3 GiB; control group: 4.00 GiB", "");
  write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 100000 kB\n");
  expect("memory", Verdict::fail, "97.7 MiB available", "ps --sort -rss");
  write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n");
  write("proc/sys/vm/overcommit_memory", "2\n");
  expect("memory", Verdict::warn, "overcommit_memory = 2", "sysctl");
}

TEST_F(Doctor, huge_pages_and_frequency) {
  write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  expect("huge pages", Verdict::warn, "never", "tee /sys/kernel/mm/transparent_hugepage/enabled");
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  expect("frequency", Verdict::warn, "powersave", "echo performance");
}

TEST_F(Doctor, disk_and_shared_memory) {
  examined_.calibration.disk_write = BytesPerSecond(2e9);
  examined_.calibration.disk_read = BytesPerSecond(3e9);
  expect("disk", Verdict::ok, "100 GiB free of 200 GiB; fsync 2.00 ms; writes 2.00 GB/s, reads 3.00 GB/s", "");
  system_.sync = Seconds(0.3);
  expect("disk", Verdict::warn, "fsync 300 ms", "checkpoint.every");
  system_.disk = SpaceFacts{kMiB, kGiB};
  expect("disk", Verdict::fail, "1.00 MiB free", "make room");
  system_.sync = error(ErrorKind::io, "cannot write in 'runs': Read-only file system");
  expect("disk", Verdict::fail, "Read-only", "may be written");
  system_.shared = SpaceFacts{kMiB * 64, kMiB * 64};
  expect("shared memory", Verdict::warn, "64.0 MiB free", "--shm-size");
  system_.shared.reset();
  expect("shared memory", Verdict::warn, "not there", "mount");
}

TEST_F(Doctor, clock_load_and_limits) {
  system_.ticking = {5e-3, true};
  expect("clock", Verdict::warn, "drift +5000 ppm; synchronised", "timedatectl");
  system_.ticking = {0, false};
  expect("clock", Verdict::warn, "not synchronised", "set-ntp");
  system_.ticking = {0, std::nullopt};
  expect("clock", Verdict::ok, "drift +0 ppm", "");
  write("proc/loadavg", "40.0 0.20 0.30 1/100 1234\n");
  expect("load", Verdict::warn, "40.00 runnable", "calibrate");
  system_.open_files = 256;
  expect("limits", Verdict::warn, "open files 256, locked memory unlimited", "ulimit -n 1024");
}

TEST_F(Doctor, a_missing_library_names_its_package) {
  examined_.libraries = {
      {"oneDNN", error(ErrorKind::unsupported, "cannot be loaded").hinted("apt-get install libdnnl2")}};
  expect("library", Verdict::fail, "cannot be loaded", "apt-get install libdnnl2");
}

TEST_F(Doctor, a_calibration_that_is_absent_old_or_of_another_machine) {
  expect("calibration", Verdict::ok, "of 2026-11-20, 1 day old", "");
  examined_.today = "2027-11-21";
  expect("calibration", Verdict::warn, "366 days old", "systole calibrate");
  examined_.calibration = {"cpu-avx512", "2026-11-20", false, std::nullopt, std::nullopt, std::nullopt};
  expect("calibration", Verdict::warn, "'cpu-avx512', guessed", "systole calibrate --quick");
  examined_.calibration.stale = error(ErrorKind::invalid, "is of another machine").hinted("systole calibrate");
  expect("calibration", Verdict::warn, "of another machine", "systole calibrate");
}

// The real system; checks only what holds on any machine.
TEST(System, answers) {
  const std::unique_ptr<System> system = this_system();
  EXPECT_GT(system->space(".")->total.count(), 0);
  EXPECT_EQ(system->space("/no such folder"), std::nullopt);
  EXPECT_LT(std::abs(system->clock().drift), 0.5);
  EXPECT_GT(system->sync_time(".").value(), Seconds(0));
  EXPECT_EQ(system->sync_time("/no such folder").error().kind, ErrorKind::io);
}

}  // namespace
}  // namespace systole
