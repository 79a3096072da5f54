#pragma once
// A workload, and the plan it may have, as the files by which a cluster starts it. Pure: no clock, no randomness, no
// files; the same words give the same bytes. Targets are listed in docs/reference/targets.md.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "describe/spec/plan.h"
#include "describe/spec/workload.h"
#include "ground/base/result.h"
#include "ground/catalog/image.h"
#include "ground/catalog/tables.h"
#include "operate/render/cost.h"
#include "operate/render/quota_need.h"

namespace systole {

enum class RenderTarget { slurm, kubernetes, gke, gcloud, ssh, docker };
const char* name_of(RenderTarget target);
std::span<const RenderTarget> render_targets();
// Errors: invalid, with the nearest.
Result<RenderTarget> render_target_named(std::string_view name);

// The catalog, read by whoever asks; all of it lives as long as what is asked.
struct RenderFacts {
  const Catalog* catalog = nullptr;  // null: no accelerators of the catalog can be asked for
  std::span<const MachineType> machines;
  std::span<const TpuSlice> slices;
  std::span<const ZoneRow> zones;
  std::span<const Fabric> fabrics;
  std::span<const StorageTier> storage;
  std::span<const PriceRow> prices;
  std::span<const QuotaRow> quotas;
  std::span<const NcclRow> nccl;
};

// What travels with the files; each is held to its SHA-256 (64 hex digits) where it is started.
struct Carried {
  std::string text, sha256;
};

// The image that is built, where the target is docker.
enum class ImageAccelerator { cpu, cuda, tpu };
const char* name_of(ImageAccelerator accelerator);  // "cpu", "cuda", "tpu"
struct ImageAsk {
  std::string base;                             // empty: the first of those known that is for its accelerator
  std::optional<ImageAccelerator> accelerator;  // without: cuda with GPUs, else cpu
  std::span<const ImageRow> known;
};

struct RenderAsk {
  RenderTarget target = RenderTarget::slurm;
  const Workload& workload;
  RenderFacts facts = {};
  Carried workload_file = {};
  const Plan* plan = nullptr;  // null: made where it runs
  Carried plan_file = {};      // empty without a plan
  std::string program_sha256;  // of the systole that starts it
  std::string version;         // of Systole, for the first line of each file
  std::string run;             // what the run is called there; empty: as the workload
  std::string place;           // the folder that the files go to, as the commands that are told name it
  std::string environment;     // which of the workload's is laid over it; empty: none
  ImageAsk image;
};
// An environment whose name begins with "prod": what may change under its name is refused there.
bool is_production(const RenderAsk& ask);

struct RenderedFile {
  std::string path;  // below that folder, '/' between
  std::string text;
  bool executable = false;
};

struct Rendered {
  std::string run;
  std::string folder;  // of the run, as its machines name it; the tasks of an array have one each, FOLDER.INDEX
  std::map<std::string, std::string> where;  // what its target finds it by again, in its words: hosts, a namespace
  std::optional<double> usd_per_hour;        // of all its machines together; nothing: nobody knows
  std::vector<RenderedFile> files;
  std::vector<std::pair<std::string, std::string>> commands;  // what for, and the line: start, look, stop
  std::vector<std::string> warnings;
  std::optional<JobCost> cost;  // of targets that rent what it runs on
  std::vector<QuotaNeed> quotas;
  std::string region;   // that the limits are of
  std::string drawing;  // of Mermaid
};

// What a run is called on a cluster: `asked`, or as the workload; lower-case letters, digits and '-'. Errors: invalid.
Result<std::string> run_name(const std::string& asked, const Workload& workload);

// Errors: unsupported, what the target cannot do, with the one that can; invalid, a name or number that it does not
// take. All are in the first one's `others`.
Result<Rendered> render(const RenderAsk& ask);

}  // namespace systole
