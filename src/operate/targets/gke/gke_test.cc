// Target gke from workloads: refusals, costs to the cent, quota use, and rendering with every name and machine family.
#include <gtest/gtest.h>

#include <algorithm>

#include "ground/base/testing/places.h"
#include "ground/base/testing/processor_time.h"
#include "ground/base/text_file.h"
#include "ground/process/capture.h"
#include "operate/render/testing/builtin_facts.h"
#include "operate/render/testing/hostile.h"
#include "operate/targets/gke/testing/hcl_reader.h"
#include "operate/targets/gke/testing/terraform_schema.h"
#include "operate/targets/job_targets.h"
#include "operate/targets/kubernetes/testing/official_schema.h"

namespace systole {
namespace {

const std::string kSource = SYSTOLE_SOURCE_DIR;
const std::string kSchemas = kSource + "/data/schemas/";
const std::string kImage = "image=registry.example/train@sha256:" + std::string(64, 'a');
const std::string kGke = "gke={project: my-lab-7, cluster: train, location: us-central1-a}";

Workload workload(const char* name, std::vector<std::string> sets) {
  const std::string path = kSource + "/examples/" + name;
  return read_workload(read_text_file(path).value(), path, {.sets = std::move(sets)}).value();
}

Result<Rendered> rendered(const Workload& w, const char* target = "gke") {
  RenderRequest ask{.target = find_job_target_row(target), .workload = w, .facts = builtin_facts()};
  ask.workload_file = {to_yaml(w), std::string(64, '1')};
  ask.program_sha256 = std::string(64, '2');
  ask.version = "systole";
  ask.place = "here";
  return render(ask);
}

Rendered program(std::vector<std::string> sets) {
  sets.insert(sets.begin(), {kImage, kGke});
  return rendered(workload("ddp.yaml", std::move(sets))).value();
}

const std::string& file(const Rendered& made, const char* path) {
  return std::ranges::find(made.files, path, &RenderedFile::path)->text;
}

std::string refusals(std::vector<std::string> sets, const char* name = "ddp.yaml") {
  const Result<Rendered> result = rendered(workload(name, std::move(sets)));
  if (result.ok()) return "";
  std::string text = result.error().message + " | " + result.error().hint + "\n";
  for (const Error& other : result.error().others) text += other.message + " | " + other.hint + "\n";
  return text;
}

// Only Google's API server has these kinds.
TEST(RenderGke, networks_are_as_their_schemas_say) {
  OfficialSchemas schemas(kSchemas);
  const std::string text = file(program({"resources={accelerators: 'a3-highgpu-8g:2'}"}), "networks.yaml");
  int objects = 0;
  for (std::size_t at = 0; at != text.npos;) {
    const std::size_t end = text.find("\n---\n", at);
    const std::string one = text.substr(at, end == text.npos ? end : end + 1 - at);
    at = end == text.npos ? end : end + 5;
    const Node object = parse_yaml(one, "networks.yaml").value();
    EXPECT_EQ(schemas.wrong(object), std::nullopt);
    const Node& spec = *object.find("spec");
    const bool network = object.find("kind")->text() == "Network";
    for (const auto& [key, value] :
         {std::pair("vpcs", "x"), network ? std::pair("type", "Fast") : std::pair("deviceMode", "Fast")}) {
      Node changed = object, changed_spec = spec;
      changed.set("spec", changed_spec.set(key, value));
      EXPECT_NE(schemas.wrong(changed), std::nullopt) << key;
    }
    ++objects;
  }
  EXPECT_EQ(objects, 8) << "a network and what it is made of, for each of four";
}

TEST(RenderGke, refuses_what_google_would_all_at_once) {
  EXPECT_EQ(refusals({kImage, "resources={accelerators: 'h100:16'}"}),
            "gke.project: '' is no project | gke: { project: ID }; gcloud projects list\n"
            "gke.cluster: '' is no name of a cluster | up to 24 lower-case letters, digits and '-', a letter first; it "
            "is made if it is not there\n"
            "gke.location: '' is neither a zone nor a region | gke.location: us-central1-a\n");
  const auto refuses = [](std::vector<std::string> sets, const std::string& part) {
    sets.insert(sets.begin(), {kImage, kGke});
    const std::string said = refusals(sets);
    EXPECT_NE(said.find(part), std::string::npos) << sets.back() << ": " << said;
  };
  refuses({"resources={accelerators: 'h100:16'}", "gke.location=us-central1"},
          "gke.zone: nodes are in one zone of us-central1 | gke.zone: us-central1-a");
  refuses({"resources={accelerators: 'h100:16'}", "gke.zone=us-east1-b"},
          "gke.zone: 'us-east1-b' is no zone of us-central1-a");
  refuses({"resources={accelerators: 'h100:16'}", "gke.machine=n1-standard-4"},
          "gke.machine: n1-standard-4, and resources.accelerators are of a3-highgpu-8g");
  refuses({"resources={accelerators: 'h100:16'}", "name=" + std::string(41, 'x')},
          "41 characters; a node pool takes 40 here");
  refuses({"resources={nodes: 2, gpus_per_node: 8, threads: 4, memory: 64GiB}"}, "GKE has to know which GPUs");
  refuses({"resources={accelerators: 'v2-8'}", "command=[python3, x]"}, "GKE has no nodes of v2");
  refuses({"resources={accelerators: 'a4x-maxgpu-4g-metal:2'}"}, "how its networks are set up is not known");
  refuses({"resources={accelerators: 'h100:16', provisioning: spot}"},
          "ranks.notice: 30 s; a spot node of GKE gives its pods 15 s in all");
  refuses({"resources={nodes: 2, threads: 200, memory: 64GiB}"}, "the catalog has no machine for 200 processors");
  refuses({"resources={nodes: 2, threads: 2, memory: 4GiB, provisioning: flex-start}"},
          "only nodes with accelerators are waited for");
}

// By hand: $88.49 per machine and hour, 2 machines, 48 hours: 2 x 88.49 = 176.98, x 48 = 8,495.04.
TEST(RenderGke, costs_to_the_cent) {
  const Rendered h100 = program({"resources={accelerators: 'a3-highgpu-8g:2', longest: 2d}"});
  ASSERT_TRUE(h100.cost);
  EXPECT_NEAR(h100.cost->total(h100.cost->each)->count(), 8495.04, 0.005);
  EXPECT_EQ(cost_lines(*h100.cost).front(),
            "2 x a3-highgpu-8g in us-central1: $176.98/h on demand; 48 h 00 min if it takes resources.longest: "
            "$8,495.04 (list of 2026-09-17)");
  // 16 chips at $1.20 are $19.20 per hour, spot at $0.29771 $4.76; the duration is unknown.
  const Rendered v5e =
      program({"command=[python3, x]", "resources={accelerators: 'v5e:4x4', provisioning: spot}", "ranks.notice=10s"});
  EXPECT_EQ(
      cost_lines(*v5e.cost),
      (std::vector<std::string>{"1 x v5e:4x4 in us-central1: $19.20/h on demand (list of 2026-07-09)",
                                "1 x v5e:4x4 in us-central1: $4.76/h spot (list of 2026-07-09)",
                                "how long it runs is not known: resources.longest, or a plan, says it",
                                "unknown: what GKE takes for the cluster, its system machine, disks and traffic"}));
  // Two CPU machines at $0.379998 each, and an attached GPU: $0.35 for a T4 and $0.189999 for its host.
  const Rendered cpu = program({"resources={nodes: 2, threads: 6, memory: 20GiB, longest: 1h}"});
  EXPECT_NEAR(cpu.cost->total(cpu.cost->each)->count(), 0.76, 0.005);
  const Rendered t4 = program({"resources={accelerators: 'n1-*+1xt4:1', threads: 2, memory: 8GiB, longest: 1h}"});
  EXPECT_NEAR(t4.cost->total(t4.cost->each)->count(), 0.54, 0.005);
  // An elastic range gives a cost range.
  const Rendered elastic =
      program({"resources={accelerators: 'a2-highgpu-8g:4', nodes: '1:4'}", "kubernetes.kind=pytorchjob"});
  EXPECT_NE(cost_lines(*elastic.cost)[0].find("1 to 4 x a2-highgpu-8g in us-central1: $29.39/h to $117.55/h on demand"),
            std::string::npos)
      << cost_lines(*elastic.cost)[0];
}

TEST(RenderGke, what_no_list_prices_stays_unknown) {
  const Rendered gb200 =
      program({"resources={accelerators: 'a4x-highgpu-4g:2', provisioning: reserved, reservation: r, longest: 1h}"});
  EXPECT_FALSE(gb200.cost->total(gb200.cost->each));
  EXPECT_NE(cost_lines(*gb200.cost)[0].find("2 x a4x-highgpu-4g in us-central1: unknown on demand"), std::string::npos);
  EXPECT_EQ(to_json(cost_node(*gb200.cost)).find("\"dollars\""), std::string::npos);
  const Rendered tpu = program({"command=[python3, x]", "resources={accelerators: 'tpu7x:4x4x4'}"});
  EXPECT_EQ(quota_lines(tpu.quotas, "us-central1"),
            (std::vector<std::string>{"TPUS_PER_TPU_FAMILY (tpu_family=tpu7x) in us-central1: 64 chips; usually 0",
                                      "HDB_TOTAL_GB in us-central1: 1600 GB", "CPUS in us-central1: 4 vCPUs",
                                      "SSD_TOTAL_GB in us-central1: 100 GB; usually 250 to 500 in new projects",
                                      "IN_USE_ADDRESSES in us-central1: 1 IP; usually 8; 4 in trial accounts"}));
}

TEST(RenderGke, a_limit_that_no_list_names_is_unknown) {
  const QuotaSpend spends[] = {
      {.machine = "g4-standard-48", .accelerator = "rtx-pro-6000", .terms = Provisioning::spot, .gpus = 2}};
  EXPECT_EQ(quota_lines(quota_needs(builtin_facts().quotas, {}, spends), "us-central1"),
            std::vector<std::string>{"unknown: no list names the limit of 2 x rtx-pro-6000 in us-central1"});
}

TEST(RenderGke, names_the_limits_that_it_spends) {
  const auto lines = [](std::vector<std::string> sets) {
    const Rendered made = program(std::move(sets));
    return quota_lines(made.quotas, made.region);
  };
  EXPECT_EQ(lines({"resources={accelerators: 'a3-highgpu-8g:2'}"}),
            (std::vector<std::string>{"GPUS_ALL_REGIONS of the project: 16 GPUs; usually 0 in new projects",
                                      "GPUS_PER_GPU_FAMILY (gpu_family=NVIDIA_H100) in us-central1: 16 GPUs; usually 0",
                                      "CPUS_PER_VM_FAMILY (vm_family=A3) in us-central1: 416 vCPUs",
                                      "LOCAL_SSD_TOTAL_GB_PER_VM_FAMILY (vm_family=A3) in us-central1: 12000 GB",
                                      // The boot disks of two nodes and of the cluster's own, which has 4 processors.
                                      "SSD_TOTAL_GB in us-central1: 300 GB; usually 250 to 500 in new projects",
                                      "CPUS in us-central1: 4 vCPUs",
                                      "IN_USE_ADDRESSES in us-central1: 1 IP; usually 8; 4 in trial accounts"}));
  EXPECT_EQ(
      lines({"command=[python3, x]", "resources={accelerators: 'v5e:4x4', provisioning: spot}", "ranks.notice=10s"})[0],
      "PREEMPTIBLE_TPU_LITE_PODSLICE_V5 in us-central1: 16 chips; usually 16 to 1536");
  EXPECT_EQ(lines({"resources={nodes: 2, threads: 6, memory: 20GiB}"}),
            (std::vector<std::string>{"CPUS in us-central1: 20 vCPUs",
                                      "SSD_TOTAL_GB in us-central1: 300 GB; usually 250 to 500 in new projects",
                                      "IN_USE_ADDRESSES in us-central1: 1 IP; usually 8; 4 in trial accounts"}));
  EXPECT_EQ(lines({"resources={accelerators: 'h100:16', provisioning: reserved, reservation: r}"}),
            (std::vector<std::string>{"SSD_TOTAL_GB in us-central1: 300 GB; usually 250 to 500 in new projects",
                                      "CPUS in us-central1: 4 vCPUs",
                                      "IN_USE_ADDRESSES in us-central1: 1 IP; usually 8; 4 in trial accounts"}))
      << "what is reserved was spent when it was set aside; the cluster and disks were not";
}

TEST(RenderGke, tells_how_to_make_start_and_undo_it) {
  const Rendered made = program({"resources={accelerators: 'h100:16'}", "claims={/runs: runs}", "folder=/runs"});
  std::string text;
  for (const auto& [what, line] : made.commands) text += what + ": " + line + "\n";
  EXPECT_TRUE(text.starts_with("make: bash here/cluster.sh\n")) << text;
  EXPECT_NE(text.find("start: kubectl --context=gke_my-lab-7_us-central1-a_train apply --server-side -f here/job.yaml"),
            std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("undo: bash here/undo.sh\n")) << text;
  EXPECT_TRUE(made.warnings.empty()) << made.warnings[0];
  EXPECT_EQ(text.find("budget: "), std::string::npos);
  const Rendered bounded = program({"resources={accelerators: 'h100:16', price: 90}", "objective.budget=1000",
                                    "claims={/runs: runs}", "folder=/runs"});
  const auto budget = std::ranges::find(bounded.commands, "budget", [](const auto& told) { return told.first; });
  ASSERT_NE(budget, bounded.commands.end());
  EXPECT_NE(budget->second.find("--budget-amount=1000.00USD --filter-projects=projects/my-lab-7 "
                                "--threshold-rule=percent=0.5 --threshold-rule=percent=0.9 "
                                "--threshold-rule=percent=1.0"),
            std::string::npos)
      << budget->second;
  const Rendered moon = program(
      {"resources={accelerators: 'h100:16'}", "claims={/runs: runs}", "folder=/runs", "gke.location=africa-south1-a"});
  EXPECT_TRUE(
      moon.warnings[0].starts_with("gke: africa-south1-a: the catalog knows no a3-highgpu-8g there; it knows them in "))
      << moon.warnings[0];
}

void check_terraform(const Rendered& made) {
  static const TerraformSchema provider(kSchemas + "terraform-google-7.45.0.schema.json");
  for (const ReadBlock& block : HclReader::read(file(made, "cluster.tf")))
    EXPECT_EQ(block.type == "resource" ? provider.wrong(block) : "", "");
}

void check_objects(const Rendered& made) {
  static OfficialSchemas schemas(kSchemas);
  for (const RenderedFile& each : made.files) {
    if (!each.path.ends_with(".yaml")) continue;
    for (std::size_t at = 0; at < each.text.size();) {
      const std::size_t end = std::min(each.text.find("\n---\n", at), each.text.size());
      const Node object = parse_yaml(each.text.substr(at, end - at) + "\n", "f").value();
      EXPECT_EQ(schemas.wrong(object).value_or(""), "") << each.path;
      at = end + 5;
    }
  }
}

// Every machine and slice in the catalog that GKE has: it renders, and passes Terraform's provider schema and the API
// schemas.
TEST(RenderGke, all_families_render) {
  int machines = 0, slices = 0;
  for (const MachineType& type : builtin_facts().machines) {
    if (type.kind != MachineKind::gpu || type.accelerators < 1 || type.name.starts_with("a4x-max") ||
        type.name.starts_with("a3-edge"))
      continue;
    std::string terms = "on-demand";
    if (!type.had_by(Provisioning::on_demand))
      terms = type.had_by(Provisioning::spot) ? "spot" : "reserved, reservation: r";
    SCOPED_TRACE(type.name);
    const Result<Rendered> made = rendered(workload(
        "ddp.yaml", {kImage, kGke, "ranks.notice=10s",
                     fmt::format("resources={{accelerators: '{}:2', provisioning: {}, threads: 2, memory: 8GiB}}",
                                 type.name, terms)}));
    ASSERT_TRUE(made.ok()) << to_string(made.error());
    check_terraform(*made);
    check_objects(*made);
    EXPECT_NE(file(*made, "cluster.sh").find("--accelerator=type=" + type.gke_label), std::string::npos);
    ++machines;
  }
  for (const TpuSlice& slice : builtin_facts().slices) {
    if (slice.gke_label.empty() || !slice.usual || slice.machine.empty() || slice.hosts > 64) continue;
    SCOPED_TRACE(slice.name);
    const Result<Rendered> made =
        rendered(workload("ddp.yaml", {kImage, kGke, "command=[python3, x]",
                                       fmt::format("resources={{accelerators: '{}'}}", slice.by_shape())}));
    ASSERT_TRUE(made.ok()) << to_string(made.error());
    check_terraform(*made);
    check_objects(*made);
    EXPECT_EQ(file(*made, "cluster.sh").find("--tpu-topology=" + slice.shape_text()) != std::string::npos,
              slice.hosts > 1 || slice.accelerator == "tpu7x");
    ++slices;
  }
  EXPECT_GT(machines, 35);
  EXPECT_GT(slices, 40);
}

const std::vector<std::string> kAround = {
    "resources={threads: 4, memory: 16GiB}", "folder=/runs",
    "volumes={/runs: {filestore: zonal, size: 10TiB}, /data: {bucket: my-corpus, read_only: true}, /more: {bucket: "
    "my-corpus}, /fast: {lustre: p/us-central1-a/fast, size: 9000GiB, address: 10.0.0.3/lfs}, /old: {parallelstore: "
    "p/us-central1-a/ps, size: 12TiB, address: 10.0.0.4}}",
    "secrets={KEY: 'secret-manager:my-lab-7/wandb'}",
    "kubernetes={gcp_service_account: trainer@other-lab.iam.gserviceaccount.com, namespace: research}"};

TEST(RenderGke, the_cluster_has_what_pods_mount_read_and_are) {
  const Rendered made = program(kAround);
  check_terraform(made);
  const std::string &make = file(made, "cluster.sh"), &terraform = file(made, "cluster.tf");
  for (const char* part :
       {"--addons=GcsFuseCsiDriver,LustreCsiDriver,ParallelstoreCsiDriver,GcpFilestoreCsiDriver",
        "--enable-secret-manager", "file.googleapis.com", "lustre.googleapis.com", "parallelstore.googleapis.com",
        "storage.googleapis.com", "secretmanager.googleapis.com", "gcloud storage buckets create gs://my-corpus",
        "gcloud iam service-accounts add-iam-policy-binding trainer@other-lab.iam.gserviceaccount.com",
        "--member='serviceAccount:my-lab-7.svc.id.goog[research/ddp]'"})
    EXPECT_NE(make.find(part), std::string::npos) << part << "\n" << make;
  for (const char* part :
       {"--lifecycle-file=/dev/stdin <<'END'", "AbortIncompleteMultipartUpload\"}, \"condition\": {\"age\": 7}",
        "Delete\"}, \"condition\": {\"daysSinceNoncurrentTime\": 30}"})
    EXPECT_NE(make.find(part), std::string::npos) << part << "\n" << make;
  for (const char* part : {"lifecycle_rule {", "type = \"AbortIncompleteMultipartUpload\"", "age = 7",
                           "type = \"Delete\"", "days_since_noncurrent_time = 30"})
    EXPECT_NE(terraform.find(part), std::string::npos) << part << "\n" << terraform;
  EXPECT_EQ(make.find("buckets create", make.find("buckets create") + 1), std::string::npos) << "it is mounted twice";
  for (const char* part : {"gcs_fuse_csi_driver_config", "gcp_filestore_csi_driver_config", "lustre_csi_driver_config",
                           "parallelstore_csi_driver_config", "secret_manager_config", "\"my-corpus\"",
                           "\"projects/other-lab/serviceAccounts/trainer@other-lab.iam.gserviceaccount.com\"",
                           "\"serviceAccount:${var.project}.svc.id.goog[research/ddp]\""})
    EXPECT_NE(terraform.find(part), std::string::npos) << part << "\n" << terraform;
  EXPECT_NE(file(made, "undo.sh").find("left+=('gs://my-corpus, with what it holds')"), std::string::npos);
  for (const auto& [what, line] : made.commands) {
    EXPECT_NE(what, "identity") << "cluster.sh does it";
    EXPECT_EQ(line.find("CLUSTER_PROJECT"), std::string::npos) << line;
  }
  const std::string none = file(program({"resources={threads: 4, memory: 16GiB}"}), "cluster.sh");
  for (const char* part : {"--addons", "secret", "buckets", "workloadIdentityUser"})
    EXPECT_EQ(none.find(part), std::string::npos) << part;
}

TEST(RenderGke, refuses_what_the_cluster_would_not_have) {
  const auto refuses = [](std::vector<std::string> sets, const std::string& part) {
    sets.insert(sets.begin(), {kImage, kGke});
    const std::string said = refusals(sets);
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  refuses({"resources={threads: 4, memory: 16GiB}", "volumes={/s: {local_ssd: true}}"},
          "volumes: /s: the pool that is made has no disks of its machines for pods | hyperdisk or filestore");
  refuses({"resources={threads: 4, memory: 16GiB}", "volumes={/b: {bucket: my-google-data}}"},
          "'my-google-data' is no name of a bucket");
  refuses({"command=[python3, x]", "resources={accelerators: 'v5e:4x4', longest: 1d}", "kubernetes.queued=true"},
          "kubernetes.queued: GKE queues no nodes of TPUs");
}

TEST(RenderGke, nodes_that_are_queued_for_come_when_they_are_given) {
  const Rendered made = program({"resources={accelerators: 'a3-highgpu-8g:2', longest: 1d}", "kubernetes.queued=true"});
  check_terraform(made);
  for (const char* option : {"--flex-start", "--enable-queued-provisioning", "--num-nodes=0", "--max-nodes=2"})
    EXPECT_NE(file(made, "cluster.sh").find(option), std::string::npos) << option;
}

TEST(RenderGke, an_elastic_range_is_the_pools) {
  const Rendered made =
      program({"resources={accelerators: 'a2-highgpu-8g:4', nodes: '1:4'}", "kubernetes.kind=pytorchjob"});
  const std::string& make = file(made, "cluster.sh");
  for (const char* option : {"--num-nodes=1", "--enable-autoscaling", "--min-nodes=1", "--max-nodes=4"})
    EXPECT_NE(make.find(option), std::string::npos) << option;
  EXPECT_NE(file(made, "cluster.tf").find("min_node_count = 1"), std::string::npos);
  EXPECT_NE(make.find("overlays/standalone?ref=v1.9.4"), std::string::npos) << "the operator that it needs";
}

// User text changes neither the scripts' lines nor Terraform's resources.
TEST(RenderGke, no_text_of_a_users_becomes_a_command) {
  const Rendered plain = program({"resources={accelerators: 'h100:16'}"});
  for (const std::string& text : hostile_texts()) {
    Workload hostile = workload("ddp.yaml", {kImage, kGke, "resources={accelerators: 'h100:16'}"});
    hostile.command = {"python3", text};
    hostile.env["X"] = text;
    const bool kept = !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") == text.npos &&
                      text.size() < 64;
    if (!kept) hostile.labels["note"] = text;
    const Rendered made = rendered(hostile).value();
    for (const char* name : {"cluster.sh", "cluster.tf", "undo.sh", "networks.yaml"})
      EXPECT_EQ(file(made, name), text.empty() && std::string(name) != "undo.sh" ? file(made, name) : file(plain, name))
          << text;
    for (std::string GkeSpec::*at :
         {&GkeSpec::project, &GkeSpec::cluster, &GkeSpec::location, &GkeSpec::zone, &GkeSpec::network}) {
      Workload named = workload("ddp.yaml", {kImage, kGke, "resources={accelerators: 'h100:16'}"});
      named.gke.*at = text;
      const bool may = text.empty() || text == "plain" || text == "yes" || text == "no" || text == "null" ||
                       text == "true" || text == "hacked";
      EXPECT_TRUE(may || !rendered(named).ok()) << text;
    }
  }
}

TEST(RenderGke, is_drawn_as_every_target_is) {
  const Rendered made = program({"resources={accelerators: 'a3-highgpu-8g:2'}", "claims={/data: corpus}"});
  for (const char* part :
       {"subgraph g0[\"GKE cluster train in us-central1-a, project my-lab-7\"]", "2 x a3-highgpu-8g, close together",
        "ranks 8 to 15, 8 x h100", "network train-gpu-4: 1 to each node", "claim corpus"})
    EXPECT_NE(made.drawing.find(part), std::string::npos) << part << "\n" << made.drawing;
  const Workload local = workload("ddp.yaml", {"ssh.hosts=[alice@node1, node2]", "resources.ranks_per_node=2"});
  EXPECT_NE(rendered(local, "ssh")->drawing.find("alice@node1: ranks 0 to 1"), std::string::npos);
  const Workload many = workload("ddp.yaml", {"resources={nodes: 64, gpus_per_node: 8, longest: 1d}"});
  const std::string slurm = rendered(many, "slurm")->drawing;
  EXPECT_NE(slurm.find("61 more"), std::string::npos) << slurm;
  EXPECT_NE(slurm.find("node 63: ranks 504 to 511, 8 GPUs"), std::string::npos) << slurm;
}

TEST(RenderGke, says_how_its_devices_reach_each_other) {
  const auto head = [](std::vector<std::string> sets) {
    const Rendered made = program(std::move(sets));
    const std::string& text = file(made, "job.yaml");
    const std::size_t begin = text.find("# Topology: ");
    std::string lines;
    for (std::size_t at = begin; at < text.size() && text[at] == '#'; at = text.find('\n', at) + 1)
      lines += text.substr(at, text.find('\n', at) + 1 - at);
    for (std::size_t at = 0; at < lines.size();) {  // the drawing has both
      const std::size_t first = lines.find(at == 0 ? ": " : "  ", at) + 2, end = lines.find('\n', at);
      std::string line = lines.substr(first, end - first);
      line.erase(0, line.find_first_not_of(' '));
      EXPECT_NE(made.drawing.find(line), std::string::npos) << line << "\n" << made.drawing;
      at = end + 1;
    }
    return lines;
  };
  EXPECT_EQ(head({"resources={accelerators: 'a2-highgpu-8g:4'}"}),
            "# Topology: each node: 8 x a100-40gb, NVLink, 300 GB/s each way a chip\n"
            "#   between nodes: TCP sockets (gVNIC), 12.5 Gbit/s a chip\n");
  EXPECT_EQ(head({"resources={accelerators: 'a3-highgpu-8g:2'}"}),
            "# Topology: each node: 8 x h100, NVLink, 450 GB/s each way a chip\n"
            "#   between nodes: GPUDirect-TCPX, 100 Gbit/s a chip\n");
  EXPECT_EQ(head({"resources={accelerators: 'a3-highgpu-8g:1'}"}),
            "# Topology: each node: 8 x h100, NVLink, 450 GB/s each way a chip\n");
  EXPECT_EQ(head({"resources={accelerators: 'n1-*+1xt4:2', threads: 2, memory: 8GiB}"}),
            "# Topology: each node: 1 x t4, alone\n#   between nodes: TCP sockets\n");
  EXPECT_EQ(head({"command=[python3, x]", "resources={accelerators: 'v5e:4x4', slices: 2}"}),
            "# Topology: each slice: 16 chips of v5e on 4 hosts, a torus of 4x4, 45 GB/s each way a link\n"
            "#   between slices: the data-centre network, 25 Gbit/s a chip\n");
  EXPECT_EQ(head({"resources={nodes: 2, threads: 6, memory: 20GiB}"}), "");
}

// The drawing has all mounts: claims, and each kind of volume.
TEST(RenderGke, what_is_mounted_is_drawn) {
  const std::string drawing = program(kAround).drawing;
  for (const char* part :
       {"/runs: filestore zonal, 10.0 TiB", "/data: bucket my-corpus, read only", "/more: bucket my-corpus",
        "/fast: lustre p/us-central1-a/fast, 8.79 TiB", "/old: parallelstore p/us-central1-a/ps"})
    EXPECT_NE(drawing.find(part), std::string::npos) << part << "\n" << drawing;
  EXPECT_EQ(drawing.find("runs: /runs"), std::string::npos) << "the folder of runs lies in a volume that is drawn";
}

TEST(RenderGke, somebody_makes_the_namespace) {
  const Rendered made = program(kAround);
  EXPECT_NE(file(made, "cluster.sh").find("|| kubectl create namespace research\n"), std::string::npos);
  for (const auto& [what, line] : made.commands) EXPECT_NE(what, "namespace") << "cluster.sh does it";
  const std::string none = file(program({"resources={threads: 4, memory: 16GiB}"}), "cluster.sh");
  EXPECT_EQ(none.find("create namespace"), std::string::npos);
}

TEST(RenderGke, takes_less_than_50_ms) {
  const Workload large =
      workload("ddp.yaml", {kImage, kGke, "command=[python3, x]", "resources={accelerators: 'v5p:4x4x4', slices: 16}"});
  (void)builtin_facts();
  const Seconds began = processor_time();
  ASSERT_TRUE(rendered(large).ok());
  const Seconds took = processor_time() - began;
  RecordProperty("ms", static_cast<int>(1e3 * took.count()));
  EXPECT_LT(took, Seconds(0.05));
}

}  // namespace
}  // namespace systole
