#pragma once
// Renders a workload, with its plan if any, as the files that start it on a target: the request and the result. Pure:
// no clock, no randomness, no files; the same input gives the same bytes. The targets are in operate/targets.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "describe/spec/job_target_table.h"
#include "describe/spec/plan.h"
#include "describe/spec/workload.h"
#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/catalog/image.h"
#include "ground/catalog/tables.h"
#include "operate/render/cost.h"
#include "operate/render/quota_need.h"

namespace systole {

// The catalog, read by the caller. It must outlive the request.
struct RenderFacts {
  const Catalog* catalog = nullptr;  // null: no catalog accelerators can be requested
  std::span<const MachineType> machines;
  std::span<const TpuSlice> slices;
  std::span<const ZoneRow> zones;
  std::span<const Fabric> fabrics;
  std::span<const StorageTier> storage;
  std::span<const PriceRow> prices;
  std::span<const QuotaRow> quotas;
  std::span<const NcclRow> nccl;
};

// Files sent along; each is verified against its SHA-256 (64 hex digits) at the start.
struct Carried {
  std::string text, sha256;
};

// The kind of image to build, for target docker.
enum class ImageAccelerator { cpu, cuda, tpu };
const char* name_of(ImageAccelerator accelerator);  // "cpu", "cuda", "tpu"
struct ImageRequest {
  std::string base;                             // empty: the first known base for its accelerator
  std::optional<ImageAccelerator> accelerator;  // default: cuda with GPUs, otherwise cpu
  std::span<const ImageRow> known;
};

struct BatchTask;

struct RenderRequest {
  const JobTargetRow* target = nullptr;  // of job_target_table(), not null
  const Workload& workload;
  RenderFacts facts = {};
  Carried workload_file = {};
  const Plan* plan = nullptr;  // null: planned where it runs
  Carried plan_file = {};      // empty without a plan
  std::string program_sha256;  // of the systole binary that starts it
  std::string version;         // of Systole, for the first line of each file
  std::string run;             // name of the run there; empty: the workload's
  std::string place;           // folder of the files, as printed commands name it
  std::string environment;     // the workload's environment overlay; empty: none
  std::string planned;         // of workload: serve, how its replicas follow from the traffic; empty: they were given
  ImageRequest image;
  const BatchTask* batch = nullptr;  // of a job of `systole batch` (batch_task.h); null: the workload is all
};
// Whether the environment's name begins with "prod": there, references that may change (tags) are refused.
bool is_production(const RenderRequest& ask);

struct RenderedFile {
  std::string path;  // relative to that folder, separated by '/'
  std::string text;
  bool executable = false;
};

struct Rendered {
  std::string run;
  std::string folder;  // of the run, as its machines name it; each array task has its own, FOLDER.INDEX
  bool array = false;
  std::map<std::string, std::string> where;    // how its target finds it again: hosts, a namespace
  std::optional<DollarsPerHour> usd_per_hour;  // of all its machines together; nothing: unknown
  std::vector<RenderedFile> files;
  std::vector<std::pair<std::string, std::string>> commands;  // purpose and command line: start, look, stop
  std::vector<std::string> warnings;
  std::optional<JobCost> cost;  // for targets that rent the machines
  std::vector<QuotaNeed> quotas;
  std::string region;   // of the quotas
  std::string drawing;  // Mermaid text
};

// The name of a run on a cluster: `asked`, or the workload's; lower-case letters, digits and '-'. Errors: invalid.
Result<std::string> run_name(const std::string& asked, const Workload& workload);

}  // namespace systole
