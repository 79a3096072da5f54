// Keys of machines that gcloud creates: what its command needs beside resources.
#include "describe/spec/targets/gcloud_keys.h"

#include <algorithm>

#include "describe/spec/schema.h"
#include "describe/spec/word_codecs.h"

namespace systole {
namespace {

bool is_option(const std::string& name) {
  return !name.empty() && name.size() <= 64 && name[0] >= 'a' && name[0] <= 'z' &&
         std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

Codec options_codec(Field<std::map<std::string, std::string>> at) {
  Codec codec = labels_codec(at);
  codec.read = [read = codec.read](const Node& node, Workload& w) -> Status {
    TRY(read(node, w));
    for (const Node::Entry& entry : node.entries())
      if (!is_option(entry.key) || entry.value.text().find('\0') != std::string::npos)
        return error(ErrorKind::invalid, "'{}' is no option of gcloud", entry.key)
            .at(entry.where())
            .hinted("lower-case letters, digits and '-', without the dashes in front: boot-disk-size: 200GB");
    return {};
  };
  return codec;
}

// Plain text without spaces and not starting with '-', which would make it an option.
Codec plain_word_codec(Field<std::string> at, const char* expected) {
  const auto is_valid = [](const std::string& text) {
    return !text.empty() && text.size() <= 253 && text[0] != '-' &&
           std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
  };
  return valid_text_codec(at, expected, is_valid, "printable characters without spaces; no '-' in front");
}

}  // namespace

void add_gcloud_keys(Schema& schema) {
  schema.sections.push_back({"gcloud", "Machines that a command of gcloud's makes.", {}, {}});
  using Create = GcloudSpec::Create;
  Codec create = usual_choice_codec<Create>(AT(gcloud.create), {{"nothing", Create::nothing},
                                                                {"instances", Create::instances},
                                                                {"tpu-vm", Create::tpu_vm},
                                                                {"node-pool", Create::node_pool},
                                                                {"cluster", Create::cluster}});
  schema.keys.push_back({.path = "gcloud.create",
                         .codec = std::move(create),
                         .doc =
                             "What is made: machines of Compute Engine, a Cloud TPU VM, or a pool or cluster of GKE, "
                             "which gke.cluster and gke.location name.",
                         .optional = true});
  const auto word = [&](const char* path, Field<std::string> at, const char* expected, const char* doc) {
    schema.keys.push_back({.path = path, .codec = plain_word_codec(at, expected), .doc = doc, .optional = true});
  };
  word("gcloud.name", AT(gcloud.name), "name", "What it is called.");
  word("gcloud.project", AT(gcloud.project), "id of a project", "Project that it is in. Without it, gcloud's own.");
  word("gcloud.zone", AT(gcloud.zone), "zone or region", "Where it is made, where gke.location does not say it.");
  word("gcloud.machine", AT(gcloud.machine), "machine type", "Type of each machine.");
  word("gcloud.accelerator", AT(gcloud.accelerator), "accelerator of gcloud's",
       "Accelerator in gcloud's words: type=nvidia-tesla-a100,count=4, or v4-8 of a TPU VM.");
  schema.keys.push_back(
      {.path = "gcloud.options",
       .codec = options_codec(AT(gcloud.options)),
       .doc = "Other options of that command, by name without dashes; one that takes no value has \"\".",
       .optional = true});
}

}  // namespace systole
