// Every accelerator of the catalog as pods: selected by node labels, or refused with a reason.
#include <gtest/gtest.h>

#include <set>

#include "operate/targets/kubernetes/testing/kubernetes_rendered.h"

namespace systole {
namespace {

const std::vector<std::string> kPlain = {"image=registry.example/train:1", "claims={/runs: runs}", "folder=/runs"};

std::vector<std::string> on(const std::string& accelerators, std::vector<std::string> more = {}) {
  std::vector<std::string> sets = kPlain;
  sets.push_back("resources.accelerators='" + accelerators + "'");
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

// The object that runs the job, of any kind.
const Node& job_of(const std::vector<Node>& objects) { return objects.back(); }

const Node& pod_of(const Node& job) {
  if (job.find("kind")->text() == "Job") return at(job, "spec.template.spec");
  return at(job, "spec.replicatedJobs.0.template.spec.template.spec");
}

std::string text(const Node& map, std::string_view key) {
  const Node* value = map.find(key);
  return value == nullptr ? "" : value->text();
}

std::string tolerated(const Node& pod) {
  std::string keys;
  for (const Node& one : at(pod, "tolerations").items()) keys += text(one, "key") + " ";
  return keys;
}

// Rules for pods on accelerators that no schema has.
void expect_sound(const std::vector<Node>& objects, const std::string& what) {
  const Node& job = job_of(objects);
  const Node& pod = pod_of(job);
  const std::string name = at(job, "metadata.name").text();
  const bool tpu = at(pod, "containers.0.resources.limits").find("google.com/tpu") != nullptr;
  const std::string device = tpu ? "google.com/tpu" : "nvidia.com/gpu";
  const Node& resources = at(pod, "containers.0.resources");
  EXPECT_EQ(text(at(resources, "limits"), device), text(at(resources, "requests"), device)) << what;
  EXPECT_EQ(text(at(resources, "limits"), "memory"), text(at(resources, "requests"), "memory")) << what;
  EXPECT_NE(tolerated(pod).find(device), std::string::npos) << what << ": its nodes refuse it";
  EXPECT_EQ(text(at(pod, "nodeSelector"), "cloud.google.com/gke-accelerator-count"),
            text(at(resources, "limits"), device))
      << what << ": a pod is alone on its node";
  EXPECT_EQ(text(pod, "restartPolicy"), "Never") << what;
  std::int64_t pods = at(job, "spec").find("completions") != nullptr ? at(job, "spec.completions").as_int().value() : 0;
  if (text(job, "kind") == "JobSet") {
    const Node& one = at(job, "spec.replicatedJobs.0");
    pods = at(one, "replicas").as_int().value() * at(one, "template.spec.completions").as_int().value();
    EXPECT_EQ(at(one, "template.spec.completions"), at(one, "template.spec.parallelism")) << what << ": a gang";
    EXPECT_EQ(at(job, "spec.network.subdomain").text(), name) << what;
    const std::string pod_name = fmt::format("{}-slice-{}-{}-abcde", name, at(one, "replicas").as_int().value() - 1,
                                             at(one, "template.spec.completions").as_int().value() - 1);
    EXPECT_LE(pod_name.size(), 63u) << what;
  }
  if (!tpu) return;
  std::int64_t chips = 1;
  const std::string shape = text(at(pod, "nodeSelector"), "cloud.google.com/gke-tpu-topology");
  for (std::size_t from = 0; from <= shape.size();) {
    const std::size_t end = std::min(shape.find('x', from), shape.size());
    chips *= std::stoll(shape.substr(from, end - from));
    from = end + 1;
  }
  const std::int64_t slices =
      text(job, "kind") == "JobSet" ? at(job, "spec.replicatedJobs.0.replicas").as_int().value() : 1;
  EXPECT_EQ(slices * chips, pods * std::stoll(text(at(resources, "limits"), device))) << what << ": " << shape;
}

// Renders it, or checks that the refusal has a reason and a remedy. Returns whether it rendered.
bool rendered_or_refused(const std::vector<std::string>& sets, const std::string& what) {
  const Workload of = workload("ddp.yaml", sets);
  const Result<Rendered> made = rendered(of);
  if (!made.ok()) {
    EXPECT_FALSE(made.error().message.empty()) << what;
    EXPECT_FALSE(made.error().hint.empty()) << what << ": " << made.error().message;
    EXPECT_NE(made.error().kind, ErrorKind::internal) << what;
    return false;
  }
  const std::vector<Node> objects = objects_of(of);
  for (const Node& object : objects) EXPECT_EQ(schemas().wrong(object).value_or(""), "") << what;
  expect_sound(objects, what);
  return true;
}

TEST(RenderHardware, every_slice_of_the_catalog_renders_or_is_refused) {
  std::set<std::string> refused;
  int made = 0;
  for (const TpuSlice& slice : builtin_facts().slices) {
    for (const char* slices : {"1", "2"}) {
      const std::string what = slice.by_shape() + " x " + slices;
      if (rendered_or_refused(on(slice.by_shape(), {std::string("resources.slices=") + slices}), what))
        ++made;
      else
        refused.insert(slice.accelerator);
    }
  }
  EXPECT_EQ(refused, std::set<std::string>{"v2"}) << "which GKE does not have";
  EXPECT_GT(made, 500);
}

TEST(RenderHardware, every_machine_of_the_catalog_renders_or_is_refused) {
  std::set<std::string> refused;
  int made = 0;
  for (const MachineType& machine : builtin_facts().machines) {
    if (machine.kind != MachineKind::gpu) continue;
    for (const int machines : {1, 2, 2048}) {
      const std::string what = fmt::format("{}:{}", machine.name, machines);
      const auto each = static_cast<int>(machine.accelerators);
      const std::string words =
          machine.host.empty() ? what : fmt::format("{}:{}@{}", machine.accelerator, machines * each, machine.name);
      // The share of a machine with several sizes is unknown.
      const bool sizes = machine.vcpus && machine.vcpus->least != machine.vcpus->most;
      const std::string share =
          "resources={accelerators: '" + words + "'" + (sizes ? ", threads: 1, memory: 1GiB}" : "}");
      std::vector<std::string> sets = kPlain;
      sets.push_back(share);
      if (rendered_or_refused(sets, what))
        ++made;
      else
        refused.insert(machine.name);
    }
  }
  EXPECT_EQ(refused, (std::set<std::string>{"g4-standard-6", "g4-standard-12", "g4-standard-24"}))
      << "parts of an accelerator";
  EXPECT_GT(made, 100);
}

TEST(RenderHardware, nodes_are_found_by_their_labels) {
  const std::vector<Node> objects =
      objects_of(workload("ddp.yaml", on("h100:16", {"resources.provisioning=spot", "ranks.notice=10s"})));
  const Node& pod = pod_of(job_of(objects));
  EXPECT_EQ(to_json(at(pod, "nodeSelector")),
            R"({"cloud.google.com/gke-accelerator":"nvidia-h100-80gb","cloud.google.com/gke-accelerator-count":"8",)"
            R"("cloud.google.com/gke-spot":"true"})");
  EXPECT_EQ(tolerated(pod), "nvidia.com/gpu cloud.google.com/gke-spot ");
  EXPECT_EQ(at(pod, "terminationGracePeriodSeconds").text(), "15") << "all that a spot node gives";
  EXPECT_EQ(at(job_of(objects), "spec.completions").text(), "2");
  const std::vector<Node> reserved =
      objects_of(workload("ddp.yaml", on("v4-32", {"resources.provisioning=reserved", "resources.reservation=big"})));
  EXPECT_EQ(to_json(at(pod_of(job_of(reserved)), "nodeSelector")),
            R"({"cloud.google.com/gke-tpu-accelerator":"tpu-v4-podslice","cloud.google.com/gke-tpu-topology":)"
            R"("2x2x4","cloud.google.com/gke-accelerator-count":"4","cloud.google.com/reservation-name":"big",)"
            R"("cloud.google.com/reservation-affinity":"specific"})");
  EXPECT_EQ(at(job_of(reserved), "spec.replicatedJobs.0.template.spec.parallelism").text(), "4") << "16 chips, 4 hosts";
  const std::vector<Node> arm = objects_of(workload("ddp.yaml", on("a4x-highgpu-4g:2")));
  EXPECT_EQ(tolerated(pod_of(job_of(arm))), "nvidia.com/gpu kubernetes.io/arch ");
}

TEST(RenderHardware, a_pod_has_what_is_left_of_its_machine) {
  const auto requests = [](const std::string& accelerators, std::vector<std::string> more = {}) {
    const std::vector<Node> objects = objects_of(workload("ddp.yaml", on(accelerators, std::move(more))));
    const Node& all = at(pod_of(job_of(objects)), "containers.0.resources.requests");
    return text(all, "cpu") + " " + text(all, "memory");
  };
  EXPECT_EQ(requests("v5e:4x4"), "110 175Gi") << "of 112 and 192";
  EXPECT_EQ(requests("a2-highgpu-8g:1", {"resources.threads=8"}), "64 644Gi") << "eight ranks";
  const auto trains = [](const std::string& readers) {
    const std::vector<Node> objects = objects_of(
        workload("gpt2-124m.yaml", on("g2-standard-8:1", {"resources.threads=2", "data.readers=" + readers})));
    return text(at(pod_of(job_of(objects)), "containers.0.resources.requests"), "cpu");
  };
  EXPECT_EQ(trains("2"), "4") << "the threads that read, too";
  EXPECT_EQ(trains("32"), "6") << "as far as the machine has them";
  const std::string said = refusals("ddp.yaml", on("a2-highgpu-8g:1", {"resources.threads=16"}));
  EXPECT_NE(said.find("resources.threads: 16 for each of 8 ranks; a2-highgpu-8g leaves 94 to a pod"), said.npos)
      << said;
  EXPECT_NE(refusals("ddp.yaml", on("g2-standard-4:1", {"resources.memory=16GiB"})).find("g2-standard-4 leaves"),
            std::string::npos);
}

TEST(RenderHardware, refuses_what_does_not_agree) {
  const auto refuses = [](const std::string& accelerators, std::vector<std::string> more, const std::string& part,
                          const std::string& hint = "") {
    const std::string said = refusals("ddp.yaml", on(accelerators, std::move(more)));
    EXPECT_NE(said.find(part), std::string::npos) << accelerators << ": " << said;
    EXPECT_NE(said.find(hint), std::string::npos) << accelerators << ": " << said;
  };
  refuses("h10:8", {}, "resources.accelerators: h10:8: no accelerator, machine or slice is called 'h10'", "'h100'");
  refuses("v5e:3x3", {}, "there is no slice v5e:3x3", "v5e:2x4");
  refuses("h100:16", {"resources.nodes=3"}, "resources.nodes: 3, and a3-highgpu-8g:2 has 2 machines",
          "resources.nodes: 2");
  refuses("h100:16", {"resources.gpus_per_node=4"}, "resources.gpus_per_node: 4, and a3-highgpu-8g:2 has 8 GPUs");
  refuses("v5e:4x4", {"resources.gpus_per_node=4"}, "resources.gpus_per_node: 4, and v5e:4x4 are TPUs");
  refuses("h100:16", {"resources.slices=2"}, "are no TPUs, which come in slices");
  refuses("v5p-32:2", {"resources.slices=3"}, "resources.slices: 3, and resources.accelerators: v5p-32:2 are 2");
  refuses("a3-ultragpu-8g:1", {"resources.provisioning=on-demand"}, "a3-ultragpu-8g is not had so",
          "spot, flex-start, reserved");
  refuses("h100:8", {"resources.provisioning=spot"}, "ranks.notice: 30 s; a spot node of GKE gives its pods 15 s",
          "ranks: { notice: 10s }");
  refuses("h100:8", {"resources.provisioning=reserved"}, "no reservation is named");
  // C046: a topology other than the slice's.
  refuses("v4-32", {"kubernetes.selector={cloud.google.com/gke-tpu-topology: 2x2x2}"},
          "kubernetes.selector: 'cloud.google.com/gke-tpu-topology: 2x2x2', and v4:2x2x4 is 2x2x4");
  refuses("v2-8", {}, "GKE has no nodes of v2");
  refuses("g4-standard-12:1", {}, "1/4 x rtx-pro-6000 of an accelerator");
  refuses("v5p-32:2", {"kubernetes.kind=job"}, "is 2 slices, and a Job is one", "kubernetes.kind: jobset");
  refuses("v5p-32:2", {"name=" + std::string(27, 'x')}, "has 27 characters; a JobSet of 2 slices takes 26");
  refuses("v5e:4x4", {"kubernetes.launcher=torchrun"}, "torchrun does not tell ranks of TPUs");
  EXPECT_EQ(refusals("ddp.yaml", on("v5p-32:2", {"name=" + std::string(26, 'x')})), "");
  std::vector<std::string> none = kPlain;
  none.push_back("resources={threads: 2, memory: 2GiB, provisioning: spot}");
  EXPECT_NE(refusals("ddp.yaml", none).find("terms belong to machines of the catalog"), std::string::npos);
  // A model is one process, with the devices of one host.
  EXPECT_NE(refusals("linear.yaml", on("h100:16")).find("a model runs on the GPUs of one node, and here are 2 nodes"),
            std::string::npos);
  EXPECT_NE(refusals("linear.yaml", on("v5e:4x4")).find("a model runs on the TPUs of one node, and here are 4 nodes"),
            std::string::npos);
  EXPECT_EQ(refusals("linear.yaml", on("v5e:2x2")), "") << "four chips of one host";
}

TEST(RenderHardware, a_plan_is_for_the_hardware_that_is_asked_for) {
  const auto said = [](const std::string& planned, std::vector<std::string> sets) {
    const Workload of = workload("linear.yaml", sets);
    Plan plan;
    plan.workload = of;
    if (!planned.empty()) plan.cost = PlannedCost{.offer = planned, .on = planned};
    const Result<Rendered> made = rendered(of, &plan);
    return made.ok() ? made->files[0].text : made.error().message + " | " + made.error().hint;
  };
  EXPECT_EQ(said("a3-highgpu-8g:1", on("v5e:2x2")),
            "the plan was made for a3-highgpu-8g:1, and resources.accelerators says v5e:2x2 | a plan for it: systole "
            "plan JOB.yaml --on v5e:2x2 --out plan.json");
  EXPECT_TRUE(said("", on("h100:8")).starts_with("the plan was made for this machine, and resources.accelerators"));
  EXPECT_NE(said("a3-edgegpu-8g:1", on("h100:8")).find("gke-accelerator: nvidia-h100-80gb"), std::string::npos)
      << "one of those that hold eight";
  EXPECT_NE(said("v5e:2x2", kPlain).find("gke-tpu-topology: 2x2"), std::string::npos) << "what it was planned for";
}

}  // namespace
}  // namespace systole
