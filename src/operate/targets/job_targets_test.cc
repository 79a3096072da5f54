#include "operate/targets/job_targets.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace systole {
namespace {

TEST(JobTargets, are_those_of_the_table_in_its_order) {
  std::vector<std::string> names;
  for (const JobTarget* target : job_targets()) names.emplace_back(target->row().name);
  EXPECT_EQ(names, job_target_names());
}

// A target that the table says submits opens, or lacks its programs or its cluster here; all others refuse.
TEST(JobTargets, open_where_the_table_says_that_runs_are_submitted) {
  for (const JobTarget* target : job_targets()) {
    const std::string name = target->row().name, refused = "'" + name + "' is nothing that runs are submitted to";
    const Result<std::unique_ptr<ClusterClient>> opened = open_cluster(name);
    EXPECT_EQ(opened.ok() ? (*opened)->name() : name, name);
    EXPECT_EQ(!opened.ok() && opened.error().message == refused, !target->row().submits) << name;
  }
  EXPECT_EQ(open_cluster("slrum").error().hint, "did you mean 'slurm'?");
}

std::vector<std::string> meant(const std::vector<std::string>& keys, Workload::Kind kind = Workload::Kind::train) {
  Workload workload;
  workload.kind = kind;
  WorkloadSource source;
  for (const std::string& key : keys) source.places[key] = {};
  std::vector<std::string> names;
  for (const JobTargetRow* target : job_targets_meant(workload, source)) names.emplace_back(target->name);
  return names;
}

TEST(JobTargets, are_meant_by_keys_of_theirs) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(meant({"resources.nodes", "gcloud.name"}), Names());
  EXPECT_EQ(meant({"slurm.partition", "ssh.hosts"}), (Names{"slurm", "ssh"}));
  EXPECT_EQ(meant({"claims"}), Names{"kubernetes"});
  EXPECT_EQ(meant({"volumes./data.bucket"}), Names{"kubernetes"});
  EXPECT_EQ(meant({"kubernetes.queue", "gke.project"}), Names{"gke"}) << "which is held to what any cluster takes, too";
  EXPECT_EQ(meant({"slurm.partition", "gke.project"}, Workload::Kind::machines), Names{"gcloud"});
  EXPECT_EQ(meant({"gcloud.create", "ssh.hosts"}), Names{"ssh"}) << "which starts what runs on gcloud's machines";
}

TEST(JobTargets, that_make_the_machines_of_a_run_are_named_and_not_meant) {
  WorkloadSource source;
  for (const char* key : {"gcloud.create", "ssh.hosts", "gcloud.name"}) source.places[key] = {};
  const std::vector<const JobTargetRow*> named = targets_named(Workload(), source);
  EXPECT_EQ(named, (std::vector{find_job_target_row("gcloud"), find_job_target_row("ssh")}));
}

// A target of jobs writes what starts one, and another one does not: the class follows the table.
TEST(JobTargets, start_jobs_where_the_table_says_so) {
  for (const JobTarget* target : job_targets())
    EXPECT_EQ(dynamic_cast<const ClusterJobTarget*>(target) != nullptr, target->row().jobs.can) << target->row().name;
}

}  // namespace
}  // namespace systole
