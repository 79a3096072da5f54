// cloudbuild.yaml: Google Cloud Build builds the image and pushes it to Artifact Registry.
#include <algorithm>

#include "operate/render/quote.h"
#include "operate/render/template.h"
#include "operate/targets/docker/docker.h"

namespace systole {
namespace {

// A dollar would start a substitution; none of these texts has one.
constexpr const char* kBuild = R"(
steps:
  - name: gcr.io/cloud-builders/docker
    env: [DOCKER_BUILDKIT=1]
    args: [build, $file, $tag, .]
images: [$image]
options: { logging: CLOUD_LOGGING_ONLY }
timeout: 3600s
)";

}  // namespace

Status add_cloud_build(const RenderRequest& ask, const ClusterJob& job, const std::string& dockerfile,
                       Rendered& rendered) {
  const std::string& image = ask.workload.image;
  const std::size_t slash = image.find('/');
  const std::string host = image.substr(0, slash);
  if (slash == image.npos || !host.ends_with("-docker.pkg.dev")) return {};
  const std::string path = image.substr(slash + 1);
  const std::size_t end = path.find('/');
  if (std::ranges::count(path, '/') < 2 || end == 0)
    return key_error(ErrorKind::invalid, "image", "'{}' is no name of Artifact Registry's", image)
        .hinted("REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME:TAG");
  const Node build = fill(kBuild, {{"file", "--file=" + dockerfile}, {"tag", "--tag=" + image}, {"image", image}});
  rendered.files.push_back({"cloudbuild.yaml", made_from(ask, job) + to_yaml(build)});
  rendered.commands.emplace_back("login", fmt::format("gcloud auth configure-docker {}", host));
  rendered.commands.emplace_back(
      "cloud", fmt::format("gcloud builds submit --project={} --config={}/cloudbuild.yaml {}", path.substr(0, end),
                           shell_word(ask.place), shell_word(ask.place)));
  return {};
}

}  // namespace systole
