#pragma once
// Names that targets take.

#include <cstdint>
#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

// As a DNS label (RFC 1123, a letter first), of what `text` has of one: "GPT-2 124M!" is "gpt-2-124m".
// Errors: invalid: nothing is left, or more than `most` characters; `takes` says what needs them, for the message.
Result<std::string> dns_label(std::string_view text, std::size_t most, std::string_view takes);

// A label's value of Kubernetes: up to 63 letters, digits, '-', '_' and '.', the first and last no sign.
bool is_label_value(std::string_view text);
// A label's name: [PREFIX/]NAME.
bool is_label_name(std::string_view text);
// NAME@sha256:DIGEST, or NAME:TAG. Errors: invalid: no image, no tag, or ':latest', which is another image each day.
Status check_image(std::string_view image);

// Names as Google Cloud takes them: of most things (a letter first, no '-' last), a project, a bucket.
bool is_gcp_name(std::string_view text, std::size_t most = 63);
bool is_gcp_project(std::string_view text);
bool is_bucket(std::string_view text);
// us-central1; us-central1-a, whose region is us-central1.
bool is_gcp_region(std::string_view text);
bool is_gcp_zone(std::string_view text);
std::string_view gcp_region_of(std::string_view zone);
// Of an account of Google's, NAME@PROJECT.iam.gserviceaccount.com.
std::string_view gcp_project_of(std::string_view account);
// A label of what is paid for.
bool is_gcp_label(std::string_view key, std::string_view value);

}  // namespace systole
