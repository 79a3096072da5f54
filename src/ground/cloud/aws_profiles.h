#pragma once
// The files of AWS's tools (https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html, 2026-11): of
// ~/.aws/credentials or AWS_SHARED_CREDENTIALS_FILE sections "[name]", of ~/.aws/config or AWS_CONFIG_FILE "[default]"
// and "[profile name]". Nested settings, and sections of other kinds, are skipped. What the first file says counts.

#include <map>
#include <string>
#include <string_view>

#include "ground/cloud/google_credentials.h"

namespace systole {

class AwsProfiles {
 public:
  // Absent files are empty. Errors: invalid (a line that is none, with its number and not its text; a file with a
  // secret that others may read), io.
  static Result<AwsProfiles> read(const Variables& variables);

  bool has(std::string_view profile) const { return profiles_.contains(profile); }
  std::string get(std::string_view profile, std::string_view key) const;  // "" if absent or empty
  std::string files() const { return files_; }                            // both, for messages

 private:
  Status add(const std::string& path, bool is_config);

  std::map<std::string, std::map<std::string, std::string, std::less<>>, std::less<>> profiles_;
  std::string files_;
};

// AWS_PROFILE, else AWS_DEFAULT_PROFILE, else "default".
std::string aws_profile(const Variables& variables);

}  // namespace systole
