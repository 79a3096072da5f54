#include "operate/targets/docker/base_image.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "operate/render/cluster_job.h"
#include "operate/render/names.h"
#include "operate/render/quote.h"

namespace systole {
namespace {

bool runs_on(const ImageRow& row, const char* accelerator) {
  return std::ranges::find(row.accelerators, accelerator) != row.accelerators.end();
}

// If nothing says what a program needs, it may use fewer devices than its image supports.
bool suits(const RenderRequest& ask, const ImageRow& row, const char* accelerator) {
  const bool said = ask.image.accelerator || std::string_view(accelerator) != "cpu";
  return runs_on(row, accelerator) || (!said && !ask.workload.command.empty());
}

std::string those_there_are(const RenderRequest& ask, const char* accelerator) {
  const bool model = ask.workload.command.empty();
  std::string text;
  for (const ImageRow& row : ask.image.known)
    if (suits(ask, row, accelerator) && (row.for_models || !model)) text += (text.empty() ? "" : ", ") + row.tagged();
  return text.empty() ? "none; ~/.config/systole/catalog/images.csv takes your own" : text;
}

BaseImage of_row(const ImageRow& row) { return {row.reference(), &row, row.name == "debian"}; }

// The listed image of the requested name, with or without its digest.
const ImageRow* listed(const RenderRequest& ask, const std::string& name) {
  const auto found = std::ranges::find_if(
      ask.image.known, [&](const ImageRow& row) { return name == row.tagged() || name == row.reference(); });
  return found == ask.image.known.end() ? nullptr : &*found;
}

Result<BaseImage> named_image(const RenderRequest& ask, const char* accelerator, const std::string& name) {
  const bool model = ask.workload.command.empty();
  const auto wrong = [&](const std::string& why) {
    return error(ErrorKind::invalid, "--base: '{}' {}", comment_text(name), why)
        .hinted(fmt::format("{}{}", those_there_are(ask, accelerator),
                            model ? "" : "; or your own by its digest, NAME@sha256:DIGEST"));
  };
  if (const ImageRow* row = listed(ask, name)) {
    if (model && !row->for_models) return wrong("is for programs of your own; a model needs none of what is in it");
    if (!suits(ask, *row, accelerator))
      return wrong(fmt::format("is for {}, and {} is {}", fmt::join(row->accelerators, " and "),
                               ask.image.accelerator ? "--accelerator" : "what the workload asks for", accelerator));
    return of_row(*row);
  }
  TRY(check_image(name));
  const std::size_t at = name.find('@');
  if (at == name.npos && is_floating_tag(name.substr(name.rfind(':') + 1)))
    return wrong("is another image from time to time");
  if (model || at == name.npos) return wrong("is in no list of images");
  return BaseImage{name, nullptr, false};
}

}  // namespace

Result<ImageAccelerator> accelerator_of(const RenderRequest& ask) {
  if (ask.image.accelerator) return *ask.image.accelerator;
  ClusterJob job;
  job.gpus_per_node = ask.workload.resources.gpus_per_node.value_or(0);
  TRY(set_hardware(ask, job));
  return job.tpu() ? ImageAccelerator::tpu : job.gpus_per_node > 0 ? ImageAccelerator::cuda : ImageAccelerator::cpu;
}

const char* name_of(ImageAccelerator accelerator) {
  switch (accelerator) {
    case ImageAccelerator::cpu: return "cpu";
    case ImageAccelerator::cuda: return "cuda";
    case ImageAccelerator::tpu: return "tpu";
  }
  return "";
}

Result<BaseImage> debian_image(const RenderRequest& ask) {
  for (const ImageRow& row : ask.image.known)
    if (row.for_models && row.name == "debian") return of_row(row);
  return error(ErrorKind::invalid, "images.csv has no Debian that Systole's libraries could come from")
      .hinted("debian:bookworm-DATE-slim in ~/.config/systole/catalog/images.csv");
}

Result<BaseImage> base_image(const RenderRequest& ask) {
  const Workload& w = ask.workload;
  const char* accelerator = name_of(TRY(accelerator_of(ask)));
  BaseImage base;
  if (!ask.image.base.empty()) {
    base = TRY(named_image(ask, accelerator, ask.image.base));
  } else if (!w.command.empty()) {
    return error(ErrorKind::invalid, "--base: a program of your own brings the image that it runs in")
        .hinted(those_there_are(ask, accelerator) + "; or your own by its digest, NAME@sha256:DIGEST");
  } else {
    const auto found = std::ranges::find_if(
        ask.image.known, [&](const ImageRow& row) { return row.for_models && runs_on(row, accelerator); });
    if (found == ask.image.known.end())
      return error(ErrorKind::invalid, "no image of the list is for {}", accelerator)
          .hinted(those_there_are(ask, accelerator));
    base = of_row(*found);
  }
  if (is_production(ask) && base.reference.find('@') == base.reference.npos)
    return error(ErrorKind::invalid, "--base: {} has no digest, and {} is production", base.reference, ask.environment)
        .hinted(fmt::format("`docker buildx imagetools inspect {}` prints it; put it into "
                            "~/.config/systole/catalog/images.csv",
                            base.reference));
  return base;
}

}  // namespace systole
