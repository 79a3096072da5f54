#include "operate/render/render.h"

#include <algorithm>

#include "ground/base/nearest.h"
#include "operate/render/cluster_job.h"
#include "operate/render/picture.h"

namespace systole {
namespace {

constexpr RenderTarget kTargets[] = {RenderTarget::slurm,  RenderTarget::kubernetes, RenderTarget::gke,
                                     RenderTarget::gcloud, RenderTarget::ssh,        RenderTarget::docker};

}  // namespace

const char* name_of(RenderTarget target) {
  switch (target) {
    case RenderTarget::slurm: return "slurm";
    case RenderTarget::kubernetes: return "kubernetes";
    case RenderTarget::gke: return "gke";
    case RenderTarget::gcloud: return "gcloud";
    case RenderTarget::ssh: return "ssh";
    case RenderTarget::docker: return "docker";
  }
  return "";
}

std::span<const RenderTarget> render_targets() { return kTargets; }

Result<RenderTarget> render_target_named(std::string_view name) {
  std::vector<std::string> names;
  for (const RenderTarget target : kTargets) {
    if (name == name_of(target)) return target;
    names.emplace_back(name_of(target));
  }
  return error(ErrorKind::invalid, "'{}' is no target that files can be rendered for", name)
      .hinted(nearest_hint(std::string(name), names));
}

namespace {

// What runs in production is what was looked at.
Status check_production(const RenderAsk& ask) {
  const std::string& image = ask.workload.image;
  if (!is_production(ask) || image.empty() || image.find('@') != image.npos) return {};
  return error(ErrorKind::invalid, "image: {} is what its tag names today, and {} is production", image,
               ask.environment)
      .hinted("image: NAME@sha256:DIGEST; `docker push` prints the digest");
}

Result<Rendered> rendered_for(const RenderAsk& ask, const ClusterJob& job) {
  switch (ask.target) {
    case RenderTarget::slurm: return render_slurm(ask, job);
    case RenderTarget::kubernetes: return render_kubernetes(ask, job);
    case RenderTarget::gke: return render_gke(ask, job);
    case RenderTarget::ssh: return render_ssh(ask, job);
    case RenderTarget::gcloud:
    case RenderTarget::docker: break;  // have no job
  }
  return error(ErrorKind::internal, "no such target");
}

}  // namespace

bool is_production(const RenderAsk& ask) { return ask.environment.starts_with("prod"); }

Result<Rendered> render(const RenderAsk& ask) {
  if (ask.target == RenderTarget::gcloud) return render_gcloud(ask);
  if (ask.workload.kind == Workload::Kind::machines)
    return error(ErrorKind::invalid, "workload: machines: nothing runs on them that {} could start",
                 name_of(ask.target))
        .hinted("--on gcloud makes them; with command: in the place of workload: machines, a program runs there");
  if (ask.target == RenderTarget::docker) return render_docker(ask);
  TRY(check_production(ask));
  const ClusterJob job = TRY(cluster_job(ask));
  Rendered rendered = TRY(rendered_for(ask, job));
  rendered.usd_per_hour = job.usd_per_hour;
  rendered.folder = job.folder + "/" + job.run;
  if (rendered.drawing.empty()) rendered.drawing = picture_of(ask, job, nullptr);
  if (ask.workload.resources.provisioning && (ask.target == RenderTarget::slurm || ask.target == RenderTarget::ssh))
    rendered.warnings.push_back(fmt::format(
        "resources.provisioning: the machines of {} are there already; it is not used", name_of(ask.target)));
  return rendered;
}

}  // namespace systole
