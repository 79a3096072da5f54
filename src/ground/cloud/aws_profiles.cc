#include "ground/cloud/aws_profiles.h"

#include "ground/base/files.h"
#include "ground/base/text_file.h"

namespace systole {
namespace {

constexpr Bytes kMostFile{1 << 20};

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  const std::size_t begin = text.find_first_not_of(kSpaces);
  return begin == text.npos ? "" : std::string(text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1));
}

// Of "[profile name]"; nothing: a section of another kind, such as "[sso-session name]".
std::optional<std::string> profile_of(std::string_view section, bool is_config) {
  const std::string name = trimmed(section);
  if (!is_config || name == "default") return name;
  if (!name.starts_with("profile ")) return std::nullopt;
  return trimmed(std::string_view(name).substr(8));
}

}  // namespace

std::string aws_profile(const Variables& variables) {
  if (const auto name = variables("AWS_PROFILE")) return *name;
  return variables("AWS_DEFAULT_PROFILE").value_or("default");
}

Result<AwsProfiles> AwsProfiles::read(const Variables& variables) {
  const auto home = variables("HOME");
  const std::string folder = home ? *home + "/.aws/" : "";
  const auto path_of = [&](const char* variable, const char* file) {
    const auto given = variables(variable);
    return given ? *given : folder.empty() ? "" : folder + file;
  };
  AwsProfiles read;
  const std::string credentials = path_of("AWS_SHARED_CREDENTIALS_FILE", "credentials");
  const std::string config = path_of("AWS_CONFIG_FILE", "config");
  read.files_ = fmt::format("'{}' and '{}'", credentials, config);
  TRY(read.add(credentials, false));
  TRY(read.add(config, true));
  return read;
}

std::string AwsProfiles::get(std::string_view profile, std::string_view key) const {
  const auto found = profiles_.find(profile);
  if (found == profiles_.end()) return "";
  const auto value = found->second.find(key);
  return value == found->second.end() ? "" : value->second;
}

Status AwsProfiles::add(const std::string& path, bool is_config) {
  if (path.empty() || !path_exists(path)) return {};
  const std::string text = TRY(read_text_file(path, kMostFile));
  std::optional<std::string> profile;
  bool has_secret = false;
  int number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    ++number;
    const std::string content = trimmed(line);
    const bool is_nested = line.starts_with(' ') || line.starts_with('\t');
    if (content.empty() || content[0] == '#' || content[0] == ';' || is_nested) continue;
    if (content[0] == '[') {
      if (content.back() != ']') return error(ErrorKind::invalid, "a section has no ']'").at({path, number});
      profile = profile_of(std::string_view(content).substr(1, content.size() - 2), is_config);
      if (profile) profiles_[*profile];
      continue;
    }
    const std::size_t equals = content.find('=');
    if (equals == content.npos) return error(ErrorKind::invalid, "the line is no 'key = value'").at({path, number});
    const std::string key = trimmed(std::string_view(content).substr(0, equals));
    has_secret = has_secret || key == "aws_secret_access_key" || key == "aws_session_token";
    if (profile) profiles_[*profile].emplace(key, trimmed(std::string_view(content).substr(equals + 1)));
  }
  if (has_secret)
    if (std::optional<Error> readable = readable_by_others(path)) return *std::move(readable);
  return {};
}

}  // namespace systole
