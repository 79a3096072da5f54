// The Dockerfile of a workload's image: Systole on Debian, with an XLA plugin if a model needs one; or Systole and its
// libraries on top of the image of a user's program. The first printed command copies the systole binary beside the
// files; the Dockerfile verifies its digest.

#include "operate/render/cluster_job.h"
#include "operate/render/names.h"
#include "operate/render/quote.h"
#include "operate/render/template.h"
#include "operate/targets/docker/base_image.h"
#include "operate/targets/docker/docker.h"

namespace systole {
namespace {

constexpr const char* kPackages = R"(# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends PACKAGES \
 && rm -rf /var/lib/apt/lists/*
)";

constexpr const char* kProgram = R"(COPY --chmod=755 systole /usr/bin/systole
COPY systole.sha256 /usr/lib/systole/
RUN sha256sum -c /usr/lib/systole/systole.sha256 && systole --version
)";

// The vendor's plugins, pinned by version and hash.
constexpr const char* kPlugins = R"(
FROM DEBIAN AS plugins
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates python3-pip \
 && rm -rf /var/lib/apt/lists/*
COPY xla-plugins xla-plugins.txt /tools/
RUN sh /tools/xla-plugins --folder /xla-plugins PLUGIN
)";

// The base may be another distribution or version: Systole's own libraries are searched first, and the build tests that
// it starts.
constexpr const char* kOnto = R"(USER 0:0
COPY --from=systole /libraries /usr/lib/systole
COPY --from=systole /usr/bin/systole /usr/bin/systole
RUN echo /usr/lib/systole >/etc/ld.so.conf.d/zz-systole.conf && ldconfig && systole --version
)";

constexpr const char* kLibraries = R"sh(#!/bin/sh
# libraries.sh FOLDER [PROGRAM]: copies what systole is linked with or loads later, but the C library, into a folder.
set -eu
program=${2:-/usr/bin/systole}
late="LATE"
mkdir -p "$1"
# shellcheck disable=SC2086
needs=$(ldd "$program" $late)
for file in $late $(printf '%s\n' "$needs" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u); do
  case ${file##*/} in
  libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | ld-linux*) ;; # the base has its own
  *) cp -L -- "$file" "$1" ;;
  esac
done
)sh";

constexpr const char* kEnd = R"(ENV HOME=/tmp
USER 10001:10001
ENTRYPOINT ["/usr/bin/systole"]
)";

std::string packages() {
  std::string text = replaced(kPackages, "PACKAGES", fmt::format("{}", fmt::join(runtime_packages(), " ")));
  return text;
}

std::string from(const BaseImage& base, const std::string& stage) {
  std::string text;
  if (base.row != nullptr)
    text += fmt::format("# images.csv, {}: {}\n", base.row->dated.date, comment_text(base.row->dated.source));
  return text + fmt::format("FROM {}{}\n", base.reference, stage.empty() ? "" : " AS " + stage);
}

Result<std::string> labels_text(const RenderRequest& ask, const BaseImage& base) {
  std::string text =
      fmt::format("LABEL \"org.opencontainers.image.base.name\"={}\n", TRY(docker_word("--base", base.reference)));
  for (const auto& [name, value] : ask.workload.labels)
    text += fmt::format("LABEL {}={}\n", TRY(docker_word("labels", "systole.label/" + name)),
                        TRY(docker_word("labels", value)));
  return text;
}

std::string late_paths() {
  std::string text;
  for (const std::string& name : late_libraries())
    text += (text.empty() ? "" : " ") + ("/usr/lib/x86_64-linux-gnu/" + name);
  return text;
}

struct Parts {
  BaseImage base, debian;
  std::string plugin;  // "gpu", "tpu"; empty: none
  bool onto() const { return !base.debian; }
};

Result<std::string> dockerfile(const RenderRequest& ask, const Parts& parts, const std::string& head) {
  std::string text = head;
  if (!parts.plugin.empty())
    text += replaced(replaced(kPlugins, "DEBIAN", parts.debian.reference), "PLUGIN", parts.plugin);
  if (parts.onto()) {
    text += "\n" + from(parts.debian, "systole") + packages() + kProgram;
    text += "COPY libraries.sh /tools/\nRUN sh /tools/libraries.sh /libraries\n";
  }
  text += "\n" + from(parts.base, "") + TRY(labels_text(ask, parts.base));
  text += parts.onto() ? kOnto : packages() + kProgram;
  if (!parts.plugin.empty())
    text +=
        "COPY --from=plugins /xla-plugins /usr/lib/systole/xla-plugins\n"
        "ENV SYSTOLE_XLA_PLUGINS=/usr/lib/systole/xla-plugins\n";
  if (ask.workload.kind == Workload::Kind::serve) text += health_lines(ask.workload);
  return text + kEnd;
}

// Checks the name under which the image is pushed.
Status check_destination(const std::string& image) {
  if (image.empty())
    return key_error(ErrorKind::invalid, "image", "what is it called?")
        .hinted("image: REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME:TAG, or another registry's");
  TRY(check_image(image));
  if (image.find('@') != image.npos)
    return key_error(ErrorKind::invalid, "image", "{} is by digest, which only its build gives", image)
        .hinted("image: NAME:TAG here; the digest that push prints is for where it runs");
  return {};
}

}  // namespace

Result<Rendered> render_docker(const RenderRequest& ask) {
  const Workload& w = ask.workload;
  TRY(check_destination(w.image));
  ClusterJob job;
  job.run = TRY(run_name(ask.run, w));
  const ImageAccelerator accelerator = TRY(accelerator_of(ask));
  const bool program = !w.command.empty();
  Parts parts{TRY(base_image(ask)), TRY(debian_image(ask)), ""};
  if (!program && accelerator == ImageAccelerator::cuda) parts.plugin = "gpu";
  if (!program && accelerator == ImageAccelerator::tpu) parts.plugin = "tpu";
  const std::string file = fmt::format("Dockerfile.{}", program ? "program" : name_of(accelerator));
  Rendered rendered;
  rendered.run = job.run;
  rendered.files.push_back({file, TRY(dockerfile(ask, parts, made_from(ask, job)))});
  std::vector<std::string> carried = {"systole", "systole.sha256"};
  rendered.files.push_back({"systole.sha256", ask.program_sha256 + "  /usr/bin/systole\n"});
  if (parts.onto()) {
    rendered.files.push_back({"libraries.sh", replaced(kLibraries, "LATE", late_paths()), true});
    carried.emplace_back("libraries.sh");
  }
  if (!parts.plugin.empty()) {
    rendered.files.push_back({"xla-plugins", std::string(xla_plugins_script()), true});
    rendered.files.push_back({"xla-plugins.txt", std::string(xla_plugins_pins())});
    carried.insert(carried.end(), {"xla-plugins", "xla-plugins.txt"});
  }
  std::string ignored = "# Nothing else goes to the builder.\n*\n";
  for (const std::string& name : carried) ignored += "!" + name + "\n";
  rendered.files.push_back({".dockerignore", ignored});
  if (w.kind == Workload::Kind::serve) TRY(add_compose(ask, accelerator, rendered));
  TRY(add_cloud_build(ask, job, file, rendered));
  const std::string place = shell_word(ask.place);
  rendered.commands.insert(
      rendered.commands.begin(),
      {{"copy", fmt::format("cp -- \"$(command -v systole)\" {}/systole", place)},
       {"build", fmt::format("docker build --file {0}/{1} --tag {2} {0}", place, file, w.image)},
       {"push", fmt::format("docker push {}", w.image)},
       {"digest", fmt::format("docker inspect --format '{{{{index .RepoDigests 0}}}}' {}", w.image)}});
  if (parts.base.row == nullptr)
    rendered.warnings.push_back(
        fmt::format("--base: {} is in no list; its build tells whether Systole starts there", parts.base.reference));
  if (parts.base.reference.find('@') == std::string::npos)
    rendered.warnings.push_back(
        fmt::format("--base: the digest of {} is not known; prod asks for it", parts.base.reference));
  return rendered;
}

}  // namespace systole
