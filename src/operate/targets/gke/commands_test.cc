// The gcloud commands that create a GKE cluster: checked against gcloud's options, and run against a stand-in of gcloud
// that remembers its resources.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "ground/base/testing/places.h"
#include "ground/base/text_file.h"
#include "ground/process/capture.h"
#include "operate/targets/gke/testing/gke_clusters.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

const std::string kSchemas = std::string(SYSTOLE_SOURCE_DIR) + "/data/schemas/";

using Words = std::vector<std::string>;

const nlohmann::json& options_of_gcloud() {
  static const nlohmann::json all = nlohmann::json::parse(read_text_file(kSchemas + "gcloud-options.json").value());
  return all;
}

// gcloud's complaint about a command line, before any request; empty: none.
std::string wrong(const Words& words) {
  std::string command;
  std::size_t i = 1;
  for (; i < words.size() && !words[i].starts_with("--"); ++i) {
    const std::string longer = command.empty() ? words[i] : command + " " + words[i];
    const auto& commands = options_of_gcloud()["commands"];
    const bool begins = std::ranges::any_of(commands.items(), [&](const auto& each) {
      return each.key() == longer || each.key().starts_with(longer + " ");
    });
    if (!begins) break;
    command = longer;
  }
  if (!options_of_gcloud()["commands"].contains(command)) return "no command: " + command;
  const auto& own = options_of_gcloud()["commands"][command];
  for (; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) continue;  // a name
    const std::size_t equals = words[i].find('=');
    std::string option = words[i].substr(0, equals);
    const bool negated = option.starts_with("--no-");
    if (negated) option = "--" + option.substr(5);
    const nlohmann::json* takes = own.contains(option) ? &own[option] : nullptr;
    if (takes == nullptr && options_of_gcloud()["every"].contains(option))
      takes = &options_of_gcloud()["every"][option];
    if (takes == nullptr || (negated && *takes != "bool")) return command + " has no " + words[i];
    if ((*takes == "bool") != (equals == words[i].npos)) return command + ": " + option + " and its value";
    const std::string value = equals == words[i].npos ? "" : words[i].substr(equals + 1);
    if (takes->is_array() && std::ranges::find(*takes, nlohmann::json(value)) == takes->end())
      return option + " is never " + value;
  }
  return "";
}

TEST(GkeCommands, the_table_of_options_refuses) {
  EXPECT_EQ(wrong({"gcloud", "container", "clusters", "describe", "c", "--zone=z", "--project=p"}), "");
  EXPECT_EQ(wrong({"gcloud", "container", "clusters", "destroy", "c"}), "no command: container clusters");
  EXPECT_EQ(wrong({"gcloud", "compute", "networks", "create", "n", "--subnet-mod=custom"}),
            "compute networks create has no --subnet-mod=custom");
  EXPECT_EQ(wrong({"gcloud", "compute", "networks", "create", "n", "--subnet-mode=some"}),
            "--subnet-mode is never some");
  EXPECT_EQ(wrong({"gcloud", "container", "node-pools", "create", "n", "--spot=true"}),
            "container node-pools create: --spot and its value");
  EXPECT_EQ(wrong({"gcloud", "container", "node-pools", "create", "n", "--no-cluster"}),
            "container node-pools create has no --no-cluster");
}

// A folder with stand-ins of gcloud and kubectl: they log their calls, and gcloud finds what it created.
class StandIn {
 public:
  explicit StandIn(const std::string& name) : folder_(testing::TempDir() + "/systole_gke_" + name) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ + "/bin");
    fs::create_directories(folder_ + "/there");
    program("gcloud", R"(
[ "$1 $2" = 'auth list' ] && { [ -e "$HOME/nobody" ] || echo someone@example.com; exit; }
words=() name=
for word; do case $word in --*) ;; *) words+=("$word") ;; esac; done
name=${words[-1]#gs://}
name=${name%%@*}
unset 'words[-1]'
verb=${words[-1]}
[ "$verb" != workload-policy ] || { verb=create; unset 'words[-1]'; }
unset 'words[-1]'
thing=$HOME/there/$(IFS=-; echo "${words[*]}")-$name
case $verb in
describe)
  [ ! -e "$HOME/broken" ] || { cat "$HOME/broken" >&2; exit 1; }
  if [ -e "$thing" ]; then
    for word; do
      case $word in
      '--format=value(description)') sed -n 's/^--description=//p' "$thing" ;;
      '--format=value(nodePools[].name)')
        (cd "$HOME/there" && printf '%s;' default-pool container-node-pools-* | sed 's/container-node-pools-//g; s/\*;//') ;;
      --format=*Labels.*) key=${word##*.}; sed -n "s/^--labels=/,/p" "$thing" | sed -n "s/.*,${key%)}=\([^,]*\).*/\1/p" ;;
      esac
    done
    exit 0
  fi
  case "${words[*]}" in
  'compute routers nats') echo "NAT \`$name\` not found" ;;
  compute*) printf 'Could not fetch resource:\n - The resource %s was not found\n' "$name" ;;
  container*) echo "ResponseError: code=404, message=Not found: $name." ;;
  iam*) echo 'NOT_FOUND: Unknown service account.' ;;
  storage*) echo "gs://$name not found: 404." ;;
  esac >&2
  exit 1
  ;;
create) [ ! -e "$thing" ] && printf '%s\n' "$@" >"$thing" ;;
delete) rm "$thing" ;;
esac
)");
    program("kubectl", "[ \"$1 $2\" != 'config current-context' ] || echo mine\n");
  }
  ~StandIn() { fs::remove_all(folder_); }

  // Runs a script; `calls` are those of this run.
  Captured run(const std::string& script, Words arguments = {}) {
    fs::remove(folder_ + "/calls");
    std::ofstream(folder_ + "/bin/script") << script;
    Command command;
    command.argv = {"bash", folder_ + "/bin/script"};
    command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
    command.env = {{"PATH", folder_ + "/bin:/usr/bin:/bin"}, {"HOME", folder_}};
    return run_captured(command, {}).value();
  }
  std::vector<Words> calls(const std::string& program) const {
    std::vector<Words> all;
    std::ifstream file(folder_ + "/calls");
    for (std::string line; std::getline(file, line);) {
      Words words;
      for (std::size_t at = 0; at < line.size();) {
        const std::size_t end = line.find('\x1f', at);
        words.push_back(line.substr(at, end - at));
        at = end + 1;
      }
      if (words[0] == program) all.push_back(words);
    }
    return all;
  }
  std::set<std::string> there() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ + "/there")) names.insert(entry.path().filename());
    return names;
  }
  // A resource that someone else created, described as "--description=...".
  void put(const std::string& thing, const std::string& said = "") const {
    std::ofstream(folder_ + "/there/" + thing) << said << "\n";
  }
  void log_out() const { std::ofstream(folder_ + "/nobody") << "\n"; }
  // Makes every later `describe` print this.
  void say(const std::string& text) const { std::ofstream(folder_ + "/broken") << text; }

 private:
  void program(const std::string& name, const std::string& body) const {
    const std::string path = folder_ + "/bin/" + name;
    std::ofstream(path) << "#!/bin/bash\nprintf '%s\\x1f' " << name
                        << " \"$@\" >>\"$HOME/calls\"; echo >>\"$HOME/calls\"\n"
                        << body;
    fs::permissions(path, fs::perms::owner_all);
  }
  std::string folder_;
};

bool has(const Words& words, const std::string& word) { return std::ranges::find(words, word) != words.end(); }

TEST(GkeCommands, make_what_is_missing_and_undo_it) {
  int n = 0;
  for (const GkeCluster& cluster : clusters()) {
    StandIn cloud(std::to_string(n++));
    const std::string make = gke_commands(cluster, "# made\n"), undo = gke_undo(cluster, "# made\n");
    const Captured first = cloud.run(make);
    ASSERT_EQ(first.exit.code, 0) << first.out << first.err;
    for (const Words& words : cloud.calls("gcloud")) {
      EXPECT_EQ(wrong(words), "") << fmt::format("{}", fmt::join(words, " "));
      if (words[1] == "auth") continue;
      EXPECT_TRUE(has(words, "--project=my-lab-7")) << fmt::format("{}", fmt::join(words, " "));
      EXPECT_NE(words[1], "config");
    }
    const std::set<std::string> made = cloud.there();
    EXPECT_GE(made.size(), 8U);
    const Captured second = cloud.run(make);
    EXPECT_EQ(second.exit.code, 0) << second.out << second.err;
    for (const Words& words : cloud.calls("gcloud")) EXPECT_FALSE(has(words, "create")) << "nothing is made twice";
    EXPECT_EQ(cloud.there(), made);
    const Captured pools = cloud.run(undo);
    EXPECT_EQ(pools.exit.code, 0) << pools.out << pools.err;
    for (const Words& words : cloud.calls("gcloud")) EXPECT_EQ(wrong(words), "");
    EXPECT_TRUE(cloud.there().contains("container-clusters-train")) << "the cluster may be others' too";
    EXPECT_FALSE(cloud.there().contains("container-node-pools-" + cluster.pools[0].name));
    const Captured all = cloud.run(undo, {"--all"});
    EXPECT_EQ(all.exit.code, 0) << all.out << all.err;
    for (const Words& words : cloud.calls("gcloud")) EXPECT_EQ(wrong(words), "");
    std::set<std::string> data;
    for (const std::string& bucket : cluster.buckets) data.insert("storage-buckets-" + bucket);
    EXPECT_EQ(cloud.there(), data) << "only what holds data is left";
  }
}

TEST(GkeCommands, go_on_where_they_were_cut_off_and_need_an_account) {
  StandIn cloud("cut");
  const std::string make = gke_commands(plain(), "# made\n");
  const std::size_t half = make.find("gcloud container clusters describe");
  ASSERT_EQ(cloud.run(make.substr(0, make.rfind("\nthere", half))).exit.code, 0);
  EXPECT_FALSE(cloud.there().contains("container-clusters-train"));
  EXPECT_EQ(cloud.run(make).exit.code, 0);
  EXPECT_TRUE(cloud.there().contains("container-clusters-train"));
  cloud.log_out();
  const Captured nobody = cloud.run(make);
  EXPECT_EQ(nobody.exit.code, 3);
  EXPECT_NE(nobody.err.find("gcloud auth login"), std::string::npos);
}

std::set<std::string> without(std::set<std::string> all, const std::set<std::string>& some) {
  for (const std::string& one : some) all.erase(one);
  return all;
}

TEST(GkeCommands, use_what_others_made_only_when_told_so) {
  const GkeCluster cluster = clusters()[1];
  const std::string make = gke_commands(cluster, "# made\n");
  for (const auto& [thing, said] : {std::pair("compute-networks-train", ""),
                                    {"compute-networks-train-gpu-2", "--description=ours"},
                                    {"iam-service-accounts-train-nodes", "--description=systole-made-by=other"},
                                    {"container-clusters-train", "--labels=managed-by=systole,systole-made-by=other"},
                                    {"container-node-pools-ddp", "--labels=systole-run=other"}}) {
    StandIn cloud("others");
    cloud.put(thing, said);
    const Captured refused = cloud.run(make);
    EXPECT_EQ(refused.exit.code, 1) << thing << refused.err;
    EXPECT_NE(refused.err.find("and the run 'ddp' did not make it"), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("--accept-existing"), std::string::npos) << refused.err;
    const Captured told = cloud.run(make, {"--accept-existing"});
    EXPECT_EQ(told.exit.code, 0) << thing << told.err;
    for (const Words& words : cloud.calls("gcloud")) EXPECT_EQ(wrong(words), "");
  }
  StandIn cloud("usage");
  const Captured usage = cloud.run(make, {"--acept-existing"});
  EXPECT_EQ(usage.exit.code, 2);
  EXPECT_TRUE(cloud.there().empty());
}

TEST(GkeCommands, undo_takes_what_this_run_made_and_lists_the_rest) {
  const GkeCluster cluster = clusters()[1];
  const std::string make = gke_commands(cluster, "# made\n"), undo = gke_undo(cluster, "# made\n");
  {  // others own the network: it stays, with what was in it
    StandIn cloud("undo");
    cloud.put("compute-networks-train", "--description=the lab's");
    cloud.put("compute-routers-train");
    ASSERT_EQ(cloud.run(make, {"--accept-existing"}).exit.code, 0);
    const Captured all = cloud.run(undo, {"--all"});
    EXPECT_EQ(all.exit.code, 0) << all.err;
    EXPECT_EQ(cloud.there(),
              (std::set<std::string>{"compute-networks-train", "compute-routers-train", "compute-routers-nats-train"}));
    EXPECT_EQ(all.out,
              "left as it is: compute routers train, which the run 'ddp' did not make\n"
              "left as it is: compute networks train, which the run 'ddp' did not make\n");
    for (const Words& words : cloud.calls("gcloud")) EXPECT_EQ(wrong(words), "");
  }
  {  // others own the cluster: only this run's nodes are deleted
    StandIn cloud("shared");
    GkeCluster other = cluster;
    other.run = "first";
    other.pools[0].name = "first";
    other.labels[0].second = "first";
    ASSERT_EQ(cloud.run(gke_commands(other, "")).exit.code, 0);
    const std::set<std::string> before = cloud.there();
    ASSERT_EQ(cloud.run(make).exit.code, 1);
    ASSERT_EQ(cloud.run(make, {"--accept-existing"}).exit.code, 0);
    EXPECT_EQ(without(cloud.there(), before), std::set<std::string>{"container-node-pools-ddp"});
    // Even its owner does not delete it while others have nodes there.
    const Captured owner = cloud.run(gke_undo(other, ""), {"--all"});
    EXPECT_EQ(owner.exit.code, 0) << owner.err;
    EXPECT_NE(owner.out.find("container clusters train, in which others have nodes: ddp\n"), std::string::npos)
        << owner.out;
    EXPECT_TRUE(cloud.there().contains("container-clusters-train"));
    const Captured all = cloud.run(undo, {"--all"});
    EXPECT_EQ(all.exit.code, 0) << all.err;
    EXPECT_EQ(cloud.there(), without(before, {"container-node-pools-first"}));
    EXPECT_TRUE(all.out.starts_with("left as it is: container clusters train, which the run 'ddp' did not make\n"))
        << all.out;
    EXPECT_EQ(cloud.run(gke_undo(other, ""), {"--all"}).exit.code, 0);
    EXPECT_TRUE(cloud.there().empty());
  }
  StandIn cloud("undo-usage");
  ASSERT_EQ(cloud.run(make).exit.code, 0);
  const std::set<std::string> made = cloud.there();
  EXPECT_EQ(cloud.run(undo, {"--al"}).exit.code, 2);
  EXPECT_EQ(cloud.there(), made);
}

// An expired token does not mean that a node is gone: nothing is skipped, created or deleted, and gcloud's message is
// shown.
TEST(GkeCommands, end_where_gcloud_cannot_say_what_is_there) {
  const GkeCluster cluster = clusters().back();
  for (const std::string said :
       {"There was a problem refreshing your current auth tokens: Reauthentication required.",
        "ResponseError: code=403, message=Required \"container.nodePools.get\" permission(s) for \"projects/404\".",
        "Permission 'iam.serviceAccounts.get' denied on resource (or it may not exist).",
        "gcloud crashed (ConnectionError): Failed to resolve 'container.googleapis.com'"}) {
    StandIn cloud("unknown");
    ASSERT_EQ(cloud.run(gke_commands(cluster, "")).exit.code, 0);
    const std::set<std::string> made = cloud.there();
    cloud.say("ERROR: (gcloud) " + said + "\n");
    const auto ends = [&](const std::string& script, Words arguments) {
      const Captured ended = cloud.run(script, std::move(arguments));
      EXPECT_EQ(ended.exit.code, 3) << said;
      EXPECT_NE(ended.err.find(said), std::string::npos) << ended.err;
      for (const Words& words : cloud.calls("gcloud"))
        EXPECT_FALSE(has(words, "create") || has(words, "delete")) << fmt::format("{}", fmt::join(words, " "));
      EXPECT_EQ(cloud.there(), made);
    };
    ends(gke_undo(cluster, ""), {});
    ends(gke_undo(cluster, ""), {"--all"});
    ends(gke_commands(cluster, ""), {});
  }
}

const Words& of_pool(const std::vector<Words>& calls, const std::string& pool) {
  const auto found = std::ranges::find_if(
      calls, [&](const Words& w) { return w.size() > 4 && w[2] == "node-pools" && w[3] == "create" && w[4] == pool; });
  EXPECT_NE(found, calls.end());
  return *found;
}

TEST(GkeCommands, pools_are_had_on_their_terms) {
  const auto create = [&](std::size_t which, const char* pool) {
    StandIn cloud("terms");
    EXPECT_EQ(cloud.run(gke_commands(clusters()[which], "")).exit.code, 0);
    return of_pool(cloud.calls("gcloud"), pool);
  };
  const auto holds = [](const Words& words, Words wanted) {
    for (const std::string& word : wanted) EXPECT_TRUE(has(words, word)) << word;
  };
  holds(create(1, "ddp"),
        {"--accelerator=type=nvidia-h100-80gb,count=8,gpu-driver-version=latest", "--num-nodes=2",
         "--placement-type=COMPACT", "--additional-node-network=network=train-gpu-4,subnetwork=train-gpu-4"});
  holds(create(2, "ddp"),
        {"--flex-start", "--enable-queued-provisioning", "--num-nodes=0", "--min-nodes=0", "--max-nodes=4",
         "--reservation-affinity=none", "--no-enable-autorepair", "--node-locations=us-central1-a",
         "--location=us-central1", "--accelerator=type=nvidia-h100-80gb,count=8,gpu-driver-version=disabled"});
  holds(create(3, "ddp-0"), {"--spot", "--node-taints=cloud.google.com/gke-spot=true:NoSchedule",
                             "--tpu-topology=4x4x4", "--placement-policy=tpu7x-4x4x4", "--num-nodes=16"});
  const Words elastic = create(4, "ddp");
  holds(elastic, {"--enable-autoscaling", "--min-nodes=1", "--max-nodes=4", "--num-nodes=1",
                  "--reservation-affinity=specific", "--reservation=mine"});
  EXPECT_FALSE(has(elastic, "--spot"));
}

TEST(GkeCommands, kubectl_speaks_to_this_cluster_and_waits_for_its_devices) {
  StandIn cloud("kubectl");
  ASSERT_EQ(cloud.run(gke_commands(clusters()[1], "")).exit.code, 0);
  int waits = 0, used = 0;
  for (const Words& words : cloud.calls("kubectl")) {
    if (words[1] == "config") {
      used += words[2] == "use-context" && words[3] == "mine";
      continue;
    }
    EXPECT_EQ(words[1], "--context=gke_my-lab-7_us-central1-a_train");
    waits += has(words, "--for=jsonpath={.status.allocatable.nvidia\\.com/gpu}=8");
  }
  EXPECT_EQ(used, 1) << "what it spoke to before is what it speaks to afterwards";
  EXPECT_EQ(waits, 1);
}

TEST(GkeCommands, shells_take_them) {
  for (const GkeCluster& cluster : clusters())
    for (const std::string& script : {gke_commands(cluster, "# made\n"), gke_undo(cluster, "# made\n")})
      for (const Words& words : {Words{"bash", "-n", "/dev/stdin"}, {"shellcheck", "--shell=bash", "-"}}) {
        CaptureOptions options;
        options.input = script;
        const Captured said = run_captured({.argv = words}, options).value();
        EXPECT_EQ(said.exit.code, 0) << said.out << said.err;
      }
}

}  // namespace
}  // namespace systole
