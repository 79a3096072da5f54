#include "operate/targets/job_target.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "ground/base/nearest.h"

namespace systole {
namespace {

const JobTargetRow& row_named(std::string_view name) {
  const JobTargetRow* row = find_job_target_row(name);
  CHECK(row != nullptr, "the table of targets has no '{}'", name);
  return *row;
}

// Production requires an image by digest, so that it runs what was reviewed.
Status check_production(const RenderRequest& ask) {
  const std::string& image = ask.workload.image;
  if (!is_production(ask) || image.empty() || image.find('@') != image.npos) return {};
  return key_error(ErrorKind::invalid, "image", "{} is what its tag names today, and {} is production", image,
                   ask.environment)
      .hinted("image: NAME@sha256:DIGEST; `docker push` prints the digest");
}

}  // namespace

Status check_batch(const RenderRequest& ask) {
  if (ask.batch == nullptr || ask.target->batches) return {};
  return error(ErrorKind::unsupported, "{} runs no job of `systole batch`", ask.target->name)
      .hinted(fmt::format("--on {}", fmt::join(job_targets_that(&JobTargetRow::batches), " or ")));
}

JobTarget::JobTarget(std::string_view name) : row_(row_named(name)) {}

Result<std::unique_ptr<ClusterClient>> JobTarget::open(const ClusterClient::ClusterLocation&) const {
  return not_submitted_to(row_.name);
}

Result<Rendered> ClusterJobTarget::render(const RenderRequest& ask) const {
  TRY(check_production(ask));
  TRY(check_batch(ask));
  const ClusterJob job = TRY(cluster_job(ask, defaults(ask)));
  Rendered rendered = TRY(render_job(ask, job));
  rendered.run = job.run;
  rendered.usd_per_hour = job.usd_per_hour;
  rendered.folder = job.folder + "/" + job.run;
  if (ask.workload.resources.provisioning && !row().spot)
    rendered.warnings.push_back(
        fmt::format("resources.provisioning: the machines of {} are there already; it is not used", row().name));
  return rendered;
}

bool has_key(const WorkloadSource& source, std::string_view prefix) {
  return std::ranges::any_of(source.places, [&](const auto& place) { return place.first.starts_with(prefix); });
}

Error not_submitted_to(std::string_view target) {
  return error(ErrorKind::invalid, "'{}' is nothing that runs are submitted to", target)
      .hinted(nearest_hint(target, job_targets_that(&JobTargetRow::submits)));
}

}  // namespace systole
