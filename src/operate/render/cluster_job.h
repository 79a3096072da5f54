#pragma once
// What is to be run, without a word of any target: all that a workload, its plan and what is asked agree on.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operate/render/render.h"

namespace systole {

struct ClusterJob {
  std::string run;  // a DNS label
  CountRange nodes;
  std::int64_t ranks_per_node = 1;
  std::int64_t gpus_per_node = 0;
  std::optional<Seconds> longest;  // in one allocation
  Seconds notice{0.0};             // to save in
  std::int64_t retries = 0;
  std::string folder;         // of its runs
  std::string run_arguments;  // words of sh: what `systole run` is told besides its folder and how the nodes meet

  CountRange ranks() const { return {nodes.least * ranks_per_node, nodes.most * ranks_per_node}; }
  bool alone() const { return nodes.most == 1; }
};

// Errors: invalid, unsupported: all at once, as render tells them.
Result<ClusterJob> cluster_job(const RenderAsk& ask);

// The comment at the head of each file: what made it from what.
std::string made_from(const RenderAsk& ask, const ClusterJob& job);
// plan.json where there is one, and workload.yaml, as files of a folder.
std::vector<RenderedFile> carried_files(const RenderAsk& ask);

// The targets. Each refuses what it cannot do.
Result<Rendered> render_slurm(const RenderAsk& ask, const ClusterJob& job);
Result<Rendered> render_kubernetes(const RenderAsk& ask, const ClusterJob& job);
// Needs no job: an image is for any.
Result<Rendered> render_docker(const RenderAsk& ask);
Result<Rendered> render_ssh(const RenderAsk& ask, const ClusterJob& job);

}  // namespace systole
