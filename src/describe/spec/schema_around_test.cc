// Keys of a job's surroundings: volumes, queues, identity.
#include <gtest/gtest.h>

#include "describe/spec/testing/small_workload.h"

namespace systole {
namespace {

using Kind = VolumeSpec::Kind;

constexpr const char* kProgram = "systole: 1\nname: mine\ncommand: [python3, train.py]\n";

TEST(SchemaAround, volumes_of_every_kind_read_back_as_they_were) {
  const Workload w = read(std::string(kProgram) + R"(
volumes:
  /claim: corpus
  /made: { claim: results, size: 1TiB, class: standard-rwx }
  /nfs: { nfs: "10.0.0.2:/vol1", read_only: true }
  /bucket: { bucket: my-corpus, read_only: true }
  /filestore: { filestore: zonal, size: 10TiB }
  /lustre: { lustre: p/us-central1-a/fast, size: 9000GiB, address: 10.0.0.3/lfs }
  /parallelstore: { parallelstore: p/us-central1-a/ps, size: 12TiB, address: "10.0.0.4,10.0.0.5", network: ml }
  /disk: { hyperdisk: balanced, size: 500GiB }
  /scratch: { local_ssd: true, size: 300GiB }
  /new: { parallelstore: new, size: 12TiB }
  /open: { cheapest: true, size: 2TiB }
  /tier: { filestore: auto }
  /sized: { filestore: zonal }
)");
  ASSERT_EQ(w.volumes.size(), 13U);
  std::string open;
  for (const auto& [path, volume] : w.volumes)
    if (volume.open()) open += path;
  EXPECT_EQ(open, "/open/sized/tier") << "they follow from the feed";
  EXPECT_EQ(w.volumes.at("/claim"), VolumeSpec{.of = "corpus"});
  EXPECT_EQ(w.volumes.at("/made").size, 1024 * kGiB);
  EXPECT_EQ(w.volumes.at("/nfs").of, "10.0.0.2:/vol1");
  EXPECT_TRUE(w.volumes.at("/bucket").read_only);
  EXPECT_EQ(w.volumes.at("/lustre").kind, Kind::lustre);
  EXPECT_EQ(w.volumes.at("/parallelstore").network, "ml");
  EXPECT_EQ(w.volumes.at("/scratch").kind, Kind::local_ssd);
  const Workload again = read(to_yaml(w));
  EXPECT_EQ(again.volumes, w.volumes);
  EXPECT_EQ(to_yaml(again), to_yaml(w));
}

TEST(SchemaAround, encryption_between_ranks_is_off_unless_it_is_said) {
  const Workload without = read(kProgram), with = read(std::string(kProgram) + "ranks: { tls: true }\n");
  EXPECT_FALSE(without.ranks.tls);
  EXPECT_EQ(to_yaml(without).find("tls"), std::string::npos);
  EXPECT_TRUE(with.ranks.tls);
  EXPECT_TRUE(read(to_yaml(with)).ranks.tls);
}

TEST(SchemaAround, a_budget_and_a_price_are_dollars_above_nothing) {
  const Workload w = read(std::string(kProgram) + "resources: { price: 98.32 }\nobjective: { budget: 1000 }\n");
  EXPECT_EQ(w.resources.price, DollarsPerHour(98.32));
  EXPECT_EQ(w.objective.budget, Dollars(1000));
  EXPECT_EQ(to_yaml(read(to_yaml(w))), to_yaml(w));
  const auto refuses = [](const std::string& lines, const std::string& part) {
    const std::string said = errors_of(std::string(kProgram) + lines + "\n");
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  refuses("objective: { budget: 0 }", "0 is no sum of dollars");
  refuses("resources: { price: -1 }", "-1 is no sum of dollars");
  refuses("objective: { budget: .nan }", "budget");
  refuses("objective: { budgett: 5 }", "budget");
}

TEST(SchemaAround, a_volume_that_cannot_be_is_refused_with_what_it_lacks) {
  const auto refuses = [](const std::string& volume, const std::string& part) {
    const std::string said = errors_of(std::string(kProgram) + "volumes: { " + volume + " }\n");
    EXPECT_NE(said.find(part), std::string::npos) << volume << ": " << said;
  };
  refuses("data: corpus", "'data' is no path of a container");
  refuses("'/a b': corpus", "is no path of a container");
  refuses("/data: { bukket: corpus }", "bucket");
  refuses("/data: { }", "a volume is of one kind, and here are 0");
  refuses("/data: { bucket: a, claim: b }", "a volume is of one kind, and here are 2");
  refuses("/data: { bucket: a, size: 1TiB }", "it is as large as it is");
  refuses("/data: { hyperdisk: balanced }", "of which size?");
  refuses("/data: { cheapest: true, read_only: true }", "would stay empty");
  refuses("/data: { cheapest: false }", "expected true");
  refuses("/data: { filestore: HIGH_SCALE_SSD, size: 1TiB }", "is no tier");
  refuses("/data: { filestore: zonal, size: 1TiB, read_only: true }", "would stay empty");
  refuses("/data: { lustre: p/z/i, size: 1TiB }", "at which address?");
  refuses("/data: { lustre: p/z/i, address: 10.0.0.1/lfs }", "how large is it?");
  refuses("/data: { hyperdisk: ml, size: 1TiB }", "is no type of disk that one writes");
  refuses("/data: { claim: a, read_only: true, size: 1TiB }", "would stay empty");
  refuses("/data: { claim: a, class: b }", "a class is of a claim that is made");
  refuses("/data: { nfs: 'a;b' }", "is not SERVER:/PATH");
  refuses("/data: { local_ssd: false }", "expected true");
}

TEST(SchemaAround, names_of_queues_and_accounts_are_held_to_their_grammar) {
  const Workload w = read(std::string(kProgram) + R"(
kubernetes:
  queue: research
  priority: high
  topology: preferred:block
  queue_nodes: 8
  cohort: all
  queued: true
  gcp_service_account: trainer@my-project.iam.gserviceaccount.com
  metrics_port: 9090
)");
  EXPECT_EQ(w.kubernetes.topology, "preferred:block");
  EXPECT_EQ(w.kubernetes.queue_nodes, 8);
  EXPECT_TRUE(w.kubernetes.queued);
  EXPECT_EQ(to_yaml(read(to_yaml(w))), to_yaml(w));
  const auto refuses = [](const std::string& key, const std::string& part) {
    const std::string said = errors_of(std::string(kProgram) + "kubernetes: { " + key + " }\n");
    EXPECT_NE(said.find(part), std::string::npos) << key << ": " << said;
  };
  refuses("queue: 'My Queue'", "is no name of a queue");
  refuses("queue: a, topology: block", "is no required:LEVEL or preferred:LEVEL");
  refuses("queue: a, topology: 'required:a b'", "is no required:LEVEL or preferred:LEVEL");
  refuses("gcp_service_account: me@example.com", "is no NAME@PROJECT.iam.gserviceaccount.com");
  refuses("gcp_service_account: .iam.gserviceaccount.com", "is no NAME@PROJECT");
  refuses("metrics_port: 70000", "too high");
}

// ssh takes a word that begins with '-' as an option; this one runs a local program.
TEST(SchemaAround, a_machine_is_no_option_of_ssh) {
  EXPECT_EQ(read(std::string(kProgram) + "ssh: { hosts: [alice@node-1:2222, 10.0.0.1] }\n").ssh.hosts.size(), 2U);
  for (const char* host : {"-oProxyCommand=touch${IFS}here", "--", "-l", "a@-b", "-a@b", "a b", "a;b", "a:0", "a:x", "",
                           "a:70000", "@b", "a@"}) {
    const std::string said = errors_of(std::string(kProgram) + "ssh: { hosts: [fine, '" + host + "'] }\n");
    EXPECT_NE(said.find(std::string("'") + host + "' is no [USER@]HOST[:PORT]"), std::string::npos) << host << said;
    EXPECT_NE(said.find("job.yaml:4:22: "), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace systole
