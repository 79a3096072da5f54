// What the commands report about this machine: its calibration, the threads for a run, and the doctor's findings.

#include <gtest/gtest.h>

#ifdef SYSTOLE_HAS_CPU
#include <algorithm>
#include <string_view>

#include "ground/base/document.h"
#include "ground/process/machine.h"
#include "operate/cli/testing/run_systole.h"
#include "operate/cli/testing/small_workload.h"

namespace systole::cli {
namespace {

// An entry from another machine, and an incomplete one: skipped, with a message.
TEST(Calibration, of_another_machine_is_passed_over) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  const auto plan = [&](const std::string& doc, const std::string& date = "2026-01-02") {
    systole.write(".config/systole/catalog/this-machine.yaml",
                  "systole_catalog: 1\nentries:\n  this-machine:\n    kind: cpu\n    calibrated: true\n    doc: \"" +
                      doc + "\"\n    facts:\n      call: { value: 1 us, source: test, date: " + date + " }\n");
    return systole.run({"plan", "job.yaml"});
  };
  const Captured elsewhere = plan("a clock with hands");
  EXPECT_EQ(elsewhere.exit.code, 0) << elsewhere.err;
  EXPECT_NE(elsewhere.err.find("the calibration of 2026-01-02 is of another machine: 'a clock with hands'"),
            std::string::npos)
      << elsewhere.err;
  EXPECT_NE(elsewhere.out.find("UNCALIBRATED"), std::string::npos) << elsewhere.out;
  const std::size_t from = elsewhere.err.find("this is '") + 9;
  const Captured incomplete = plan(elsewhere.err.substr(from, elsewhere.err.find('\'', from) - from));
  EXPECT_NE(incomplete.err.find("the calibration of 2026-01-02 cannot be used"), std::string::npos) << incomplete.err;
  EXPECT_NE(incomplete.err.find("systole calibrate"), std::string::npos) << incomplete.err;
  EXPECT_NE(incomplete.out.find("UNCALIBRATED"), std::string::npos) << incomplete.out;
  const Captured future = plan(elsewhere.err.substr(from, elsewhere.err.find('\'', from) - from), "2999-01-02");
  EXPECT_NE(future.err.find("the calibration is of 2999-01-02, which is still to come"), std::string::npos)
      << future.err;
  EXPECT_NE(future.out.find("UNCALIBRATED"), std::string::npos) << future.out;
  const Captured doctor = systole.run({"doctor"});
  EXPECT_NE(doctor.out.find("calibration    the calibration is of 2999-01-02"), std::string::npos) << doctor.out;
}

// Links are measured separately: shared memory within a node, TCP between several.
TEST(Calibration, of_links_is_taken_by_how_ranks_speak) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  systole.write_secret("token", "00112233445566778899aabbccddeeff\n");
  const auto link = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"run", "job.yaml", "--ranks", "4", "--dry-run", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Captured planned = systole.run(words);
    EXPECT_EQ(planned.exit.code, 0) << planned.err;
    const Node plan = parse_json(planned.out, "plan").value();
    return plan.find("target")->find("facts")->find("link")->text();
  };
  const std::vector<std::string> several{"--local-ranks", "2",        "--rendezvous", "127.0.0.1:7000",
                                         "--token-file",  "token",    "--node",       "a",
                                         "--host",        "127.0.0.1"};
  EXPECT_EQ(link({}), "20.0 us, 4.00 GB/s: shm, the catalog's ranks-of-one-host of 2026-11-22, not calibrated");
  EXPECT_TRUE(link(several).find(": tcp, the catalog's ") != std::string::npos) << link(several);
  std::string facts;
  for (const char* fact : {"shm.2.latency: { value: 5 us", "shm.2.bandwidth: { value: 6 GB/s",
                           "tcp.2.latency: { value: 30 us", "tcp.2.bandwidth: { value: 2 GB/s"})
    facts += fmt::format("      link.{}, source: test, date: 2026-01-02 }}\n", fact);
  systole.write(".config/systole/catalog/this-machine.yaml",
                fmt::format("systole_catalog: 1\nentries:\n  this-machine:\n    kind: cpu\n    calibrated: true\n"
                            "    doc: \"{}; by whatever threads\"\n    facts:\n{}",
                            processor_name(), facts));
  EXPECT_EQ(link({}), "5.00 us, 6.00 GB/s: shm, systole calibrate of 2026-01-02");
  EXPECT_EQ(link(several), "30.0 us, 2.00 GB/s: tcp, systole calibrate of 2026-01-02");
}

// The estimate includes TLS between nodes if it was measured; otherwise a message says so.
TEST(Calibration, of_tls_is_counted_and_chooses_nothing) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  systole.write_secret("token", "00112233445566778899aabbccddeeff\n");
  const auto planned = [&](const std::string& more, const std::string& nodes =
                                                        "--local-ranks 2 --rendezvous 127.0.0.1:7000 --token-file "
                                                        "token --node a --host 127.0.0.1 ") {
    const Captured said = systole.shell("\"$SYSTOLE\" run job.yaml --ranks 4 --dry-run --json " + nodes + more);
    EXPECT_EQ(said.exit.code, 0) << said.err;
    return said;
  };
  const auto calibrated = [&](const std::vector<std::string>& links) {
    std::string facts;
    for (const std::string& fact : links)
      facts += fmt::format("      link.{}, source: test, date: 2026-01-02 }}\n", fact);
    systole.write(".config/systole/catalog/this-machine.yaml",
                  fmt::format("systole_catalog: 1\nentries:\n  this-machine:\n    kind: cpu\n    calibrated: true\n"
                              "    doc: \"{}; by whatever threads\"\n    facts:\n{}",
                              processor_name(), facts));
  };
  const std::string tls = "--set ranks.tls=true", left_out = "warning: ranks.tls: its cost is not in the estimate";
  std::vector<std::string> links{"tcp.2.latency: { value: 20 us", "tcp.2.bandwidth: { value: 2 GB/s",
                                 "tcp.4.latency: { value: 30 us", "tcp.4.bandwidth: { value: 1 GB/s"};
  calibrated(links);
  EXPECT_NE(planned(tls).err.find(left_out), std::string::npos) << "not measured";
  EXPECT_EQ(planned("").err.find(left_out), std::string::npos);
  EXPECT_EQ(planned(tls, "").err.find(left_out), std::string::npos) << "ranks of one machine share memory";
  links.insert(links.end(), {"tls.2.latency: { value: 30 us", "tls.2.bandwidth: { value: 500 MB/s"});
  calibrated(links);
  const Captured with = planned(tls), without = planned("");
  EXPECT_EQ(with.err.find(left_out), std::string::npos) << with.err;
  const Node encrypted = parse_json(with.out, "plan").value(), plain = parse_json(without.out, "plan").value();
  const auto fact = [](const Node& plan, const char* name) {
    const Node* found = plan.find("target")->find("facts")->find(name);
    return found == nullptr ? "" : found->text();
  };
  EXPECT_EQ(fact(plain, "link.tls"), "");
  EXPECT_EQ(fact(encrypted, "link.tls"), "45.0 us, 250 MB/s: tls beside tcp, systole calibrate of 2026-01-02");
  EXPECT_EQ(fact(encrypted, "link"), fact(plain, "link")) << "by which algorithms are chosen";
  const auto program_of = [](const Node& plan) { return plan.find("program")->find("hash")->text(); };
  EXPECT_EQ(program_of(encrypted), program_of(plain)) << "the same algorithms, so the same bits";
  const Captured here = systole.shell("\"$SYSTOLE\" plan job.yaml --set mesh.data=4 " + tls);
  EXPECT_NE(here.err.find(left_out), std::string::npos) << here.err;
  EXPECT_EQ(systole.shell("\"$SYSTOLE\" plan job.yaml " + tls).err.find(left_out), std::string::npos) << "one rank";
}

TEST(Threads, beyond_the_cores_are_refused_where_they_stand) {
  const SystoleRunner systole;
  systole.write("job.yaml", std::string(kWorkload) + "resources: { threads: 4096 }\n");
  const auto lines = std::count(std::string_view(kWorkload).begin(), std::string_view(kWorkload).end(), '\n') + 1;
  const std::string at = fmt::format("job.yaml:{}:23: error: resources.threads: 4,096 threads, and ", lines);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"plan"}, {"run", "--folder", "run"}, {"check"}, {"lock"}, {"show", "graph"}}) {
    std::vector<std::string> asked = words;
    asked.emplace_back("job.yaml");
    const Captured refused = systole.run(asked);
    EXPECT_EQ(refused.exit.code, 2) << words[0] << refused.out;
    EXPECT_NE(refused.err.find(at), std::string::npos) << words[0] << refused.err;
    EXPECT_NE(refused.err.find("hint: resources.threads: "), std::string::npos) << words[0] << refused.err;
  }
  EXPECT_FALSE(std::filesystem::exists(systole.folder() / "run"));
  // The reference backend always has one thread.
  EXPECT_EQ(systole.run({"plan", "job.yaml", "--backend", "reference"}).exit.code, 0);
  const Captured isa = systole.run({"calibrate", "--quick", "--pin-isa", "mmx"});
  EXPECT_EQ(isa.exit.code, 2) << isa.err;
  EXPECT_NE(isa.err.find("mmx"), std::string::npos) << isa.err;
  EXPECT_NE(isa.err.find("hint: "), std::string::npos) << isa.err;
  const Captured option = systole.run({"calibrate", "--quick", "--threads", "4096"});
  EXPECT_EQ(option.exit.code, 2) << option.err;
  EXPECT_NE(option.err.find("error: --threads: 4,096 threads, and "), std::string::npos) << option.err;
}

// With one core allowed, two threads are too many, also for a run that was begun with two.
TEST(Threads, beyond_the_affinity_are_refused) {
  const SystoleRunner systole;
  systole.write("job.yaml", std::string(kWorkload) + "resources: { threads: 2 }\n");
  const std::string one = "taskset -c $(taskset -pc $$ | sed 's/.*: *\\([0-9]*\\).*/\\1/') $SYSTOLE ";
  const Captured refused = systole.shell(one + "plan job.yaml");
  EXPECT_EQ(refused.exit.code, 2) << refused.out << refused.err;
  EXPECT_NE(refused.err.find("resources.threads: 2 threads, and this process may run on 1 core: a team waits"),
            std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("hint: resources.threads: 1, or leave it out"), std::string::npos) << refused.err;
  EXPECT_EQ(systole.shell(one + "plan job.yaml --set resources.threads=1").exit.code, 0);
}

// OpenMP binds the process to one core before main; it still computes with the same number of threads.
TEST(Threads, are_as_many_where_openmp_binds_them) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  const auto device = [](const Captured& told) {
    const std::string all = told.out + told.err;
    const std::size_t at = all.find("this-machine(");
    return at == all.npos ? all : all.substr(at, all.find(')', at) - at);
  };
  for (const std::string command : {"plan job.yaml", "run job.yaml --folder "}) {
    const auto run = [&](const std::string& environment, const std::string& folder) {
      const Captured got =
          systole.shell(environment + " $SYSTOLE " + command + (command.starts_with("run") ? folder : ""));
      EXPECT_EQ(got.exit.code, 0) << got.err;
      return device(got);
    };
    const std::string free = run("", "free");
    EXPECT_EQ(run("OMP_PROC_BIND=true", "bound"), free);
    EXPECT_EQ(run("OMP_PLACES=cores", "placed"), free);
  }
}

TEST(Doctor, looks_at_this_machine_and_at_a_workload) {
  const SystoleRunner systole;
  systole.write("job.yaml", std::string(kWorkload) + "resources: { threads: 4096 }\n");
  const Captured machine = systole.run({"doctor", "--json"});
  const Node seen = parse_json(machine.out, "stdout").value();
  EXPECT_EQ(seen.find("fail")->text() == "0" ? 0 : 1, machine.exit.code) << machine.out;
  std::string names;
  for (const Node& finding : seen.find("findings")->items()) names += finding.find("name")->text() + ",";
  EXPECT_EQ(names,
            "cores,threads,load,instructions,frequency,memory,huge pages,disk,shared memory,clock,limits,library,"
            "calibration,");
  const Captured asked = systole.run({"doctor", "job.yaml"});
  EXPECT_EQ(asked.exit.code, 1);
  EXPECT_NE(asked.out.find("fail  threads        4096 asked for"), std::string::npos) << asked.out;
  EXPECT_NE(asked.out.find("hint: resources.threads:"), std::string::npos) << asked.out;
}

}  // namespace
}  // namespace systole::cli
#endif
