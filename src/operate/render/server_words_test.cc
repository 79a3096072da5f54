#include "operate/render/server_words.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace systole {
namespace {

Workload served(std::string from) {
  Workload workload;
  workload.serve.from = std::move(from);
  workload.serve.slots = 4;
  workload.serve.context = 512;
  workload.serve.waiting = 64;
  return workload;
}

ClusterJob job_of(CountRange replicas) {
  ClusterJob job;
  job.run = "chat";
  job.replicas = replicas;
  job.notice = kUntilUnlisted + Seconds(30.0);
  return job;
}

TEST(ServerWords, are_the_same_in_a_script_and_in_a_pod) {
  const ServerPlace place{.token_file = "$KEYS", .port = "$PORT", .replicas = 2, .threads = 3};
  EXPECT_EQ(fmt::format("{}", fmt::join(server_words(served("/m"), job_of({2, 2}), place), " ")),
            "systole serve /m --name chat --listen 0.0.0.0 --port $PORT --token-file $KEYS --slots 4 --context 512 "
            "--waiting 64 --grace 30 --replicas 2 --threads 3");
  EXPECT_EQ(server_line(served("/m"), job_of({2, 2}), place),
            "\"$program\" serve /m --name chat --listen 0.0.0.0 --port \"$PORT\" --token-file \"$KEYS\" --slots 4 "
            "--context 512 --waiting 64 --grace 30 --replicas 2 --threads 3");
}

TEST(ServerWords, of_users_are_quoted) {
  const std::string line = server_line(served("/m; $(touch x)"), job_of({1, 1}), {.token_file = "t"});
  EXPECT_NE(line.find(" serve '/m; $(touch x)' --name"), std::string::npos) << line;
}

TEST(ServerWords, several_servers_share_a_machine_on_processors_alone) {
  std::vector<std::string> warnings;
  EXPECT_EQ(servers_of_machine(Workload(), job_of({2, 2}), warnings).value(), 2);
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(servers_of_machine(Workload(), job_of({2, 4}), warnings).value(), 2);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings[0].starts_with("serve.replicas: 2:4, and nothing here adds servers")) << warnings[0];
  ClusterJob gpus = job_of({2, 2});
  gpus.gpus_per_node = 1;
  EXPECT_EQ(servers_of_machine(Workload(), gpus, warnings).error().kind, ErrorKind::unsupported);
  gpus.replicas = CountRange{1, 1};
  EXPECT_EQ(servers_of_machine(Workload(), gpus, warnings).value(), 1);
}

TEST(ServerWords, of_a_model_that_a_mesh_cuts_there_is_one_server_on_a_machine) {
  Workload cut;
  cut.mesh = {{"model", 2}};
  std::vector<std::string> warnings;
  EXPECT_EQ(servers_of_machine(cut, job_of({2, 2}), warnings).error().kind, ErrorKind::unsupported);
  EXPECT_EQ(servers_of_machine(cut, job_of({1, 1}), warnings).value(), 1);
}

TEST(ServerWords, a_canary_has_servers_by_its_weight_and_one_at_least) {
  ServeSpec serve;
  EXPECT_EQ(canary_servers(serve, {10, 10}), 0);
  serve.canary = {"models/new", 50};
  EXPECT_EQ(canary_servers(serve, {10, 10}), 10);
  serve.canary.weight = 1;
  EXPECT_EQ(canary_servers(serve, {4, 4}), 1);
}

TEST(ServerWords, a_model_has_a_place_that_is_no_option) {
  EXPECT_TRUE(check_served(served("runs/gpt2"), false, "there").ok());
  EXPECT_EQ(check_served(served("runs/gpt2"), true, "there").error().message,
            "serve.from: 'runs/gpt2' is no path there");
  EXPECT_FALSE(check_served(served("--help"), false, "there").ok());
  EXPECT_EQ(check_served(served(""), false, "there").error().message,
            "serve.from: nothing says where the model is there");
}

}  // namespace
}  // namespace systole
