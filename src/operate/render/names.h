#pragma once
// Names that targets accept.

#include <cstdint>
#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

// Converts `text` to a DNS label (RFC 1123, starting with a letter): "GPT-2 124M!" becomes "gpt-2-124m". Errors:
// invalid: nothing is left, or it has more than `most` characters; `takes` names the user of the label, for the
// message.
Result<std::string> dns_label(std::string_view text, std::size_t most, std::string_view takes);
constexpr std::size_t kMostRunName = 48;  // of a run's name; targets append to it

// The name of a host, as Kubernetes takes it (a DNS subdomain, RFC 1123): lower-case letters, digits, '-' and '.'.
bool is_host_name(std::string_view text);
// A Kubernetes label value: up to 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit.
bool is_label_value(std::string_view text);
// A Kubernetes label name: [PREFIX/]NAME.
bool is_label_name(std::string_view text);
// NAME@sha256:DIGEST, or NAME:TAG. Errors: invalid: no image, no tag, or ':latest', which changes over time.
Status check_image(std::string_view image);

// Google Cloud names: most resources (starting with a letter, not ending with '-'), a project, a bucket.
bool is_gcp_name(std::string_view text, std::size_t most = 63);
bool is_gcp_project(std::string_view text);
bool is_bucket(std::string_view text);
// us-central1; us-central1-a, whose region is us-central1.
bool is_gcp_region(std::string_view text);
bool is_gcp_zone(std::string_view text);
std::string_view gcp_region_of(std::string_view zone);
// The project of a service account, NAME@PROJECT.iam.gserviceaccount.com.
std::string_view gcp_project_of(std::string_view account);
// A billing label.
bool is_gcp_label(std::string_view key, std::string_view value);

}  // namespace systole
